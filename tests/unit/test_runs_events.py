"""What a run tells: five methods, three displays, and the log behind all of them."""

from __future__ import annotations

import io
import logging

import pytest
from rich.console import Console

from video2pde.runs import events as module
from video2pde.runs.events import choose_events, describe_progress, Events, LiveEvents, PlainEvents, QuietEvents


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


def tell_all(events: Events) -> None:
    """Take a listener through a small run."""
    events.stage("read", "film to field")
    events.progress(1, 10)
    events.note("a [note]")
    events.done("read", 2.5, False)
    events.stage("fit", "rollout fit")
    events.warn("a warning")
    events.done("fit", 31.0, True)


def test_quiet_shows_warnings_and_logs_everything(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "video2pde"):
        tell_all(QuietEvents())
    assert capsys.readouterr() == ("", "warning: a warning\n")
    assert caplog.messages == [
        "read: film to field",
        "a [note]",
        "read: done in 2.5 s",
        "fit: rollout fit",
        "a warning",
        "fit: taken from the run folder (it took 31.0 s)",
    ]


def test_plain_lines_go_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    tell_all(PlainEvents())
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "read: film to field",
        "note: a [note]",
        "read: done in 2.5 s",
        "fit: rollout fit",
        "warning: a warning",
        "fit: taken from the run folder (it took 31.0 s)",
    ]


def test_plain_progress_prints_every_five_seconds_or_tenth(
    capsys: pytest.CaptureFixture[str], clock: list[float]
) -> None:
    events = PlainEvents()
    events.stage("fit", "slow and steady")
    for done in range(1, 101):  # 100 s: a line every tenth, that is every 10 s, and every 5 s
        clock[0] += 1.0
        events.progress(done, 100, f"a = {done}")
    slow = capsys.readouterr().err.splitlines()[1:]
    assert len(slow) == 20
    assert slow[0] == "fit: 5 of 100 after 5 s, about 95 s left, a = 5"
    events.stage("fast", "a second")
    for done in range(1, 1001):
        clock[0] += 0.001
        events.progress(done, 1000)
    assert len(capsys.readouterr().err.splitlines()) - 1 <= 2
    events.stage("unknown", "without an end")
    for done in range(12):
        clock[0] += 1.0
        events.progress(done, None)
    assert capsys.readouterr().err.splitlines()[1:] == ["unknown: 4 after 5 s", "unknown: 9 after 10 s"]


def test_the_live_display_keeps_all_stages_and_the_best_figures() -> None:
    screen = io.StringIO()
    with LiveEvents(Console(file=screen, force_terminal=True, width=110)) as events:
        tell_all(events)
        events.stage("calibrate", "rollout calibration")
        events.progress(3, 10, "a = 9.01, β = 0.66")
        events.progress(4, 10)
    text = screen.getvalue()
    last = text[text.rindex("film to field") :]
    assert "note: a [note]" in text
    assert "warning: a warning" in text
    assert "taken from the run folder" in last
    assert last.index("rollout fit") < last.index("rollout calibration") < last.index("a = 9.01, β = 0.66")
    assert "✓" in text


def test_the_display_suits_stderr(monkeypatch: pytest.MonkeyPatch) -> None:
    assert type(choose_events(quiet=True)) is QuietEvents
    assert type(choose_events()) is PlainEvents
    monkeypatch.setattr(module.sys.stderr, "isatty", lambda: True)
    with choose_events() as events:
        assert type(events) is LiveEvents


def test_progress_in_words() -> None:
    assert describe_progress(0, 10, 3.0) == "0 of 10 after 3 s"
    assert describe_progress(4, 10, 20.0, "best 1 %") == "4 of 10 after 20 s, about 30 s left, best 1 %"
    assert describe_progress(0, None, 20.0, "C, contender 1 of 3") == "C, contender 1 of 3, after 20 s"
