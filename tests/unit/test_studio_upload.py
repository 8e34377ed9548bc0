"""What is dropped into the studio is kept whole or not at all."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest
from PIL import Image
from studio_server import Client, serving

from video2pde.errors import InputError
from video2pde.studio.upload import clean_name

HEIGHT, WIDTH = 40, 60


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    np.save(tmp_path / "plume.npy", np.zeros((8, HEIGHT, WIDTH), np.uint8))
    with serving(tmp_path) as found:
        yield found.enter()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def test_a_dropped_file_is_whole_or_absent(client: Client, folder: Path) -> None:
    data = (folder / "plume.npy").read_bytes()
    before = sorted(path.name for path in folder.iterdir())
    answer = client.ask("PUT", f"/api/recordings?name={quote('../up <b>.npy')}", data)
    assert answer.status == 201
    name = answer.json["name"]
    assert name == "up <b>.npy"
    assert (folder / name).read_bytes() == data
    again = client.ask("PUT", f"/api/recordings?name={quote(name)}", data)
    assert again.json["name"] == "up <b>-2.npy"
    for path in (name, again.json["name"]):
        (folder / path).unlink()
    _send_half(client)
    end = time.monotonic() + 10
    while sorted(path.name for path in folder.iterdir()) != before:
        assert time.monotonic() < end, "half a file was left behind"
        time.sleep(0.05)


def _send_half(client: Client) -> None:
    import socket

    with socket.create_connection(("127.0.0.1", client.port)) as connection:
        host = f"127.0.0.1:{client.port}"
        head = f"PUT /api/recordings?name=half.npy HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\n"
        connection.sendall(f"{head}Cookie: {client.cookie}\r\nContent-Length: 1000000\r\n\r\n".encode() + b"x" * 5000)
        time.sleep(0.2)


def test_more_than_the_disk_holds_is_refused_before_it_is_sent(client: Client) -> None:
    answer = client.ask("PUT", "/api/recordings?name=big.npy", None, {"Content-Length": str(10**16)})
    assert answer.status == 507
    assert "free" in answer.json["error"]


def test_a_disk_that_fills_up_on_the_way_leaves_nothing(
    client: Client, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import errno

    from video2pde.studio import upload

    before = sorted(path.name for path in folder.iterdir())

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(upload.os, "link", full)
    answer = client.ask("PUT", "/api/recordings?name=full.npy", b"x" * 1000)
    assert answer.status == 507
    assert "full" in answer.json["error"]
    assert sorted(path.name for path in folder.iterdir()) == before


@pytest.mark.parametrize("name", ["run.sh", "report.html", "", "...", "x" * 250 + ".npy", "noname"])
def test_what_is_no_recording_is_not_kept(name: str) -> None:
    with pytest.raises(InputError):
        clean_name(name)


def test_a_mask_is_kept_as_a_plain_picture(client: Client, folder: Path) -> None:
    drawn = Image.new("RGBA", (WIDTH, HEIGHT), (0, 0, 0, 255))
    drawn.paste((255, 255, 255, 255), (10, 5, 40, 30))
    packed = io.BytesIO()
    drawn.save(packed, "PNG")
    answer = client.ask("PUT", "/api/mask?film=plume.npy", packed.getvalue())
    assert answer.json["name"] == "plume-mask.png"
    kept = np.asarray(Image.open(folder / "plume-mask.png"))
    assert kept.shape == (HEIGHT, WIDTH)
    assert set(np.unique(kept)) == {0, 255}
    assert (kept == 255).mean() == pytest.approx(30 * 25 / (WIDTH * HEIGHT))
    assert client.ask("PUT", "/api/mask?film=plume.npy", b"no picture").status == 400
    (folder / "plume-mask.png").unlink()
