"""Nobody but the page that the studio opened gets in: each attack, and the way that is meant to work beside it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from studio_server import Client, serving, TOKEN

from video2pde.studio.folder import Folder, OutsideError


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("open")
    rng = np.random.default_rng(1)
    np.save(root / "noise.npy", rng.integers(0, 255, (12, 20, 30), dtype=np.uint8))
    (root.parent / "secret.npy").write_bytes((root / "noise.npy").read_bytes())
    (root / "leads-out.npy").symlink_to(root.parent / "secret.npy")
    (root / "out").symlink_to(root.parent)
    (root / ".hidden.npy").write_bytes((root / "noise.npy").read_bytes())
    return root


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[Client]:
    with serving(folder) as found:
        yield found.enter()


ADDRESSES = ("/", "/studio.js", "/api/library", "/api/events", "/api/frame?name=noise.npy", "/nowhere")


@pytest.mark.parametrize("path", ADDRESSES)
def test_without_the_cookie_there_is_nothing(client: Client, path: str) -> None:
    stranger = Client(client.port)
    assert stranger.ask("GET", path).status == 403
    assert stranger.ask("GET", path, headers={"Cookie": client.cookie[:-3] + "xyz"}).status == 403
    assert stranger.ask("GET", path + ("&" if "?" in path else "?") + "token=guessed").status == 403


def test_the_token_is_good_once_and_the_cookie_is_closed_to_scripts(folder: Path) -> None:
    with serving(folder) as client:
        first = client.ask("GET", f"/?token={TOKEN}")
        assert first.status == 303
        assert first.headers["location"] == "./"
        words = {word.strip().lower() for word in first.headers["set-cookie"].split(";")[1:]}
        assert {"httponly", "samesite=strict"} <= words
        assert not any(word.startswith(("path", "domain")) for word in words)
        assert client.ask("GET", f"/?token={TOKEN}").status == 403
        assert Client(client.port, first.headers["set-cookie"].split(";")[0]).ask("GET", "/").status == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:80", "", "[::2]", "localhost.evil:1"])
def test_another_name_is_refused(client: Client, host: str) -> None:
    """A page elsewhere may have its name point to this machine; its requests carry that name."""
    answer = client.ask("GET", "/api/library", headers={"Host": host or " "})
    assert answer.status in (400, 403)
    assert client.ask("GET", "/api/library", headers={"Host": f"localhost:{client.port}"}).status == 200


def test_a_name_can_be_allowed_for_a_proxy(folder: Path) -> None:
    with serving(folder, ("hub.example.org",)) as client:
        client.enter()
        there = {"Host": "hub.example.org", "Origin": "https://hub.example.org"}
        assert client.ask("GET", "/api/library", headers=there).status == 200
        assert client.ask("GET", "/api/library", headers=there | {"Origin": "https://evil.example"}).status == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": ""},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_requests_of_other_pages_are_refused(client: Client, headers: dict[str, str]) -> None:
    wish = {"film": "noise.npy", "settings": {"recording.fps": 10}, "preset": "quick", "out": "run"}
    assert client.ask("POST", "/api/plan", wish, headers).status == 403
    assert client.ask("POST", "/api/plan", wish).status == 200


def test_no_answer_invites_other_origins_and_all_carry_the_policy(client: Client) -> None:
    for path in ("/", "/api/library", "/api/frame?name=noise.npy", "/nowhere"):
        headers = client.ask("GET", path).headers
        assert not [name for name in headers if name.startswith("access-control")]
        assert "default-src 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
    assert client.ask("OPTIONS", "/api/library", headers={"Origin": "https://evil.example"}).status == 403


NAMES = (
    "../secret.npy",
    "/etc/passwd",
    "out/secret.npy",
    "leads-out.npy",
    "a/../../secret.npy",
    "..",
    ".",
    ".hidden.npy",
    "noise.npy/../../secret.npy",
    "..\\secret.npy",
    "\0",
    "out",
)


@pytest.mark.parametrize("name", NAMES)
def test_paths_stay_inside(client: Client, name: str) -> None:
    wish = {"film": name, "settings": {}, "preset": "quick", "out": "run"}
    for answer in (
        client.get("film", name=name),
        client.get("frame", name=name, number=0),
        client.get("thumbnail", name=name),
        client.get("run", run=name),
        client.get("page", run=name),
        client.get("law.js", run=name),
        client.get("compare", run=name),
        client.post("plan", wish),
        client.post("checks", wish),
        client.post("jobs", wish),
        client.post("jobs", {**wish, "film": "noise.npy", "out": name}),
        client.ask("PUT", f"/api/mask?film={name.encode().hex()}", b""),
    ):
        assert answer.status in (400, 403), answer.body
        assert b"PNG" not in answer.body
        assert b"JFIF" not in answer.body


def test_encoded_paths_stay_inside(client: Client) -> None:
    for name in ("%2e%2e/secret.npy", "%2e%2e%2fsecret.npy", "out%2Fsecret.npy", "%00"):
        assert client.ask("GET", f"/api/frame?name={name}&number=0").status == 403
    assert client.ask("GET", "/api/../../secret.npy").status == 404


def test_links_that_lead_out_are_not_listed_and_names_come_back(client: Client, folder: Path) -> None:
    listed = [card["name"] for card in client.get("library").json["cards"]]
    assert listed == ["noise.npy"]
    opened = Folder(folder)
    assert opened.find("noise.npy") == folder / "noise.npy"
    with pytest.raises(OutsideError):
        opened.place("leads-out.npy")


def test_events_need_the_cookie_and_stop_with_the_studio(folder: Path) -> None:
    import http.client

    with serving(folder) as client:
        client.enter()
        connection = http.client.HTTPConnection("127.0.0.1", client.port, timeout=20)
        connection.request("GET", "/api/events", headers={"Cookie": client.cookie})
        answer = connection.getresponse()
        assert answer.headers["content-type"].startswith("text/event-stream")
        first = [answer.readline() for _ in range(2)]
        assert first[0] == b"event: jobs\r\n"
    connection.close()


def test_a_file_of_another_kind_is_no_recording(client: Client, folder: Path) -> None:
    os.mkfifo(folder / "pipe.npy")
    try:
        assert client.get("frame", name="pipe.npy", number=0).status == 403
        assert [card["name"] for card in client.get("library").json["cards"]] == ["noise.npy"]
    finally:
        (folder / "pipe.npy").unlink()
