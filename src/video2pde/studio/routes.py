"""What a page can ask for. Every handler names what it takes; errors go back as one line that says what to do."""

from __future__ import annotations

import io
import json
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import wraps
from typing import Any, cast

import anyio.to_thread
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from video2pde.errors import InputError, Video2pdeError
from video2pde.settings import PRESETS
from video2pde.studio.compare import compare_runs, gather_settings
from video2pde.studio.folder import OutsideError
from video2pde.studio.hub import Hub
from video2pde.studio.library import describe_run, is_run, is_running, list_library
from video2pde.studio.pages import PageData, read_page
from video2pde.studio.prepare import look_at, plan_run, suggest_out, Wish
from video2pde.studio.screen import ReplacedError
from video2pde.studio.store import Shot
from video2pde.studio.upload import DiskFullError, receive
from video2pde.studio.watch import STAGES

Handler = Callable[[Request], Awaitable[Response]]
SIDE = 1600
BODY = 2_000_000
MASK_BYTES = 20_000_000
NUMBER = 10_000_000


def told(handler: Handler) -> Handler:
    """Turn errors into answers: one line, and a status that says what kind it is."""

    @wraps(handler)
    async def careful(request: Request) -> Response:
        try:
            return await handler(request)
        except Video2pdeError as error:
            kinds: dict[type[Exception], int] = {OutsideError: 403, ReplacedError: 409, DiskFullError: 507}
            return JSONResponse({"error": " ".join(str(error).split())}, kinds.get(type(error), 400))
        except ClientDisconnect:
            return Response(status_code=499)
        except OSError as error:
            return JSONResponse({"error": f"the disk answers: {error.strerror or error}"}, 400)

    return careful


def hub_of(request: Request) -> Hub:
    return cast(Hub, request.app.state.hub)


def text(request: Request, name: str) -> str:
    """Take a text from the query."""
    value = request.query_params.get(name)
    if not value:
        raise InputError(f"the request lacks '{name}'")
    return value


def number(request: Request, name: str, default: int, most: int) -> int:
    """Take a whole number from the query."""
    value = request.query_params.get(name, str(default))
    if not value.isascii() or not value.isdigit() or int(value) > most:
        raise InputError(f"'{name}' must be a whole number up to {most}")
    return int(value)


async def body(request: Request) -> dict[str, Any]:
    """Take JSON from a request, of a size that a page would send."""
    data = b""
    async for chunk in request.stream():
        data += chunk
        if len(data) > BODY:
            raise InputError("the request is too large")
    try:
        values = json.loads(data)
    except (ValueError, RecursionError):
        raise InputError("the request is not JSON") from None
    if not isinstance(values, dict):
        raise InputError("the request must hold names and values")
    return values


@told
async def library(request: Request) -> Response:
    return JSONResponse(await anyio.to_thread.run_sync(list_library, hub_of(request).folder))


@told
async def film(request: Request) -> Response:
    """Describe a recording that is to be prepared."""
    hub, name = hub_of(request), text(request, "name")

    def describe() -> dict[str, Any]:
        opened = hub.screen.open(name)
        return {**opened.describe(), "out": suggest_out(hub.folder, name), "presets": list(PRESETS)}

    return JSONResponse(await anyio.to_thread.run_sync(describe))


def picture(shot: Shot) -> Response:
    at = "" if math.isnan(shot.time) else f"{shot.time:.6f}"
    return Response(shot.jpeg, media_type="image/jpeg", headers={"x-frame": str(shot.number), "x-time": at})


@told
async def frame(request: Request) -> Response:
    hub, name, version = hub_of(request), text(request, "name"), request.query_params.get("version")
    place, side = number(request, "number", 0, NUMBER), number(request, "side", 960, SIDE)
    quick = request.query_params.get("quick") == "1"
    return picture(await anyio.to_thread.run_sync(hub.screen.shot, name, version, place, side, quick))


@told
async def thumbnail(request: Request) -> Response:
    hub, name = hub_of(request), text(request, "name")
    return picture(await anyio.to_thread.run_sync(hub.screen.thumbnail, name))


@told
async def look(request: Request) -> Response:
    """Return u in one frame with the settings of the page."""
    hub, values = hub_of(request), await body(request)
    wish = Wish.of(values)
    place = values.get("number", 0)
    if not isinstance(place, int) or not 0 <= place <= NUMBER:
        raise InputError("'number' must be the number of a frame")

    def make() -> Response:
        seen = look_at(hub.screen.open(wish.film, values.get("version")), place, wish.settings)
        ny, nx = seen.levels.shape
        return Response(
            seen.levels.tobytes(),
            media_type="application/octet-stream",
            headers={"x-u": json.dumps({"ny": ny, "nx": nx, "low": seen.low, "high": seen.high, "inner": seen.inner})},
        )

    return await anyio.to_thread.run_sync(make)


@told
async def plan(request: Request) -> Response:
    hub, wish = hub_of(request), Wish.of(await body(request))
    return JSONResponse(await anyio.to_thread.run_sync(lambda: plan_run(hub.folder, hub.screen.open(wish.film), wish)))


@told
async def checks(request: Request) -> Response:
    """Read the recording as a run would: lines of JSON with how far it is, and what was found."""
    hub, wish = hub_of(request), Wish.of(await body(request))
    hub.folder.find(wish.film)
    _ = wish.settings
    order = {"film": wish.film, "preset": wish.preset, "settings": dict(wish.touched)}

    async def lines() -> AsyncIterator[str]:
        async for answer in hub.work("check", order):
            yield json.dumps(answer) + "\n"

    return StreamingResponse(lines(), media_type="application/x-ndjson")


@told
async def upload(request: Request) -> Response:
    declared = request.headers.get("content-length", "")
    size = int(declared) if declared.isascii() and declared.isdigit() else None
    name = await receive(hub_of(request).folder, text(request, "name"), size, request.stream())
    hub_of(request).tell("library", "{}")
    return JSONResponse({"name": name}, 201)


@told
async def mask(request: Request) -> Response:
    """Keep a mask that was drawn: a picture of the frame's size, white where the law holds."""
    hub, name = hub_of(request), text(request, "film")
    data = b""
    async for chunk in request.stream():
        data += chunk
        if len(data) > MASK_BYTES:
            raise InputError("the mask is too large")
    opened = await anyio.to_thread.run_sync(hub.screen.open, name)

    def keep() -> str:
        from PIL import Image

        from video2pde.files import atomic_write

        try:
            with Image.open(io.BytesIO(data), formats=["PNG"]) as drawn:
                if drawn.size != (opened.header.width, opened.header.height):
                    raise InputError(f"the mask has {drawn.size[0]}×{drawn.size[1]} pixels, the frame has others")
                plain = drawn.convert("L").point(lambda level: 255 * (level > 127))
        except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
            raise InputError("the mask is not a PNG picture") from None
        target = hub.folder.free_name(f"{name.rpartition('.')[0] or name}-mask.png")
        with atomic_write(target) as file:
            plain.save(file, "PNG")
        return hub.folder.name(target)

    return JSONResponse({"name": await anyio.to_thread.run_sync(keep)}, 201)


@told
async def add_job(request: Request) -> Response:
    hub, wish = hub_of(request), Wish.of(await body(request))
    job = await anyio.to_thread.run_sync(hub.jobs.add, wish)
    hub.tell("jobs", hub.jobs_text())
    return JSONResponse({"id": job.id, "out": job.out}, 201)


@told
async def change_job(request: Request) -> Response:
    hub, name = hub_of(request), request.path_params["job"]
    actions: dict[str, Callable[[str], Any]] = {
        "stop": hub.jobs.stop,
        "continue": hub.jobs.go_on,
        "remove": hub.jobs.remove,
    }
    action = actions.get(request.path_params["action"])
    if action is None:
        raise InputError("a run can be stopped, continued or removed from the list")
    await anyio.to_thread.run_sync(action, name)
    hub.tell("jobs", hub.jobs_text())
    return JSONResponse({})


@told
async def run(request: Request) -> Response:
    """Describe one run."""
    hub, name = hub_of(request), text(request, "run")
    path = hub.folder.find(name)
    if not is_run(path):
        raise InputError(f"'{name}' is not the folder of a run")
    from dataclasses import asdict

    return JSONResponse({**asdict(await anyio.to_thread.run_sync(describe_run, hub.folder, path)), "stages": STAGES})


def page_data(hub: Hub, name: str) -> PageData | None:
    """Read the report of a run: its own, or the one of a run that is under way; None where there is none yet."""
    own = hub.folder.place(name) / "report.html"
    hub.folder.place(f"{name}/report.html")
    live = hub.live_page(name)
    chosen = own if own.is_file() and not is_running(own.parent) else live
    return read_page(chosen) if chosen.is_file() else None


@told
async def page(request: Request) -> Response:
    hub, name = hub_of(request), text(request, "run")
    data = await anyio.to_thread.run_sync(page_data, hub, name)
    return Response(status_code=204) if data is None else Response(data.document, media_type="application/json")


@told
async def page_film(request: Request) -> Response:
    hub, name, which = hub_of(request), text(request, "run"), number(request, "film", 0, 9999)
    data = await anyio.to_thread.run_sync(page_data, hub, name)
    if data is None or which not in data.films:
        raise InputError("the report has no such film")
    return Response(data.films[which], media_type="text/plain")


@told
async def law(request: Request) -> Response:
    """Write the law of a run as a script, from its model file, whose texts are parsed against a whitelist."""
    hub, name = hub_of(request), text(request, "run")
    path = hub.folder.find(f"{name}/model.json")

    def write() -> str:
        from video2pde.using.javascript import write_script
        from video2pde.using.modelfile import SavedModel

        found = SavedModel.load(path).law
        return write_script([(found.terms, found.flow is not None)])

    return Response(await anyio.to_thread.run_sync(write), media_type="text/javascript")


@told
async def compare(request: Request) -> Response:
    hub, names = hub_of(request), request.query_params.getlist("run")
    return JSONResponse(await anyio.to_thread.run_sync(compare_runs, hub.folder, names))


@told
async def settings(request: Request) -> Response:
    """List every setting with its meaning, for the page's own form."""
    return JSONResponse(await anyio.to_thread.run_sync(gather_settings, request.query_params.get("preset", "default")))


@told
async def events(request: Request) -> Response:
    """Tell the page what changes, for as long as it is open."""
    from sse_starlette.sse import EventSourceResponse

    hub, watched = hub_of(request), request.query_params.get("run")
    if watched is not None:
        hub.folder.place(watched)

    async def stream() -> AsyncIterator[dict[str, str]]:
        async for event, data in hub.listen(watched):
            yield {"event": event, "data": data}

    return EventSourceResponse(stream(), ping=15)


ROUTES = [
    Route("/api/library", library),
    Route("/api/film", film),
    Route("/api/frame", frame),
    Route("/api/thumbnail", thumbnail),
    Route("/api/look", look, methods=["POST"]),
    Route("/api/plan", plan, methods=["POST"]),
    Route("/api/checks", checks, methods=["POST"]),
    Route("/api/recordings", upload, methods=["PUT"]),
    Route("/api/mask", mask, methods=["PUT"]),
    Route("/api/jobs", add_job, methods=["POST"]),
    Route("/api/jobs/{job}/{action}", change_job, methods=["POST"]),
    Route("/api/run", run),
    Route("/api/page", page),
    Route("/api/page/film", page_film),
    Route("/api/law.js", law),
    Route("/api/compare", compare),
    Route("/api/settings", settings),
    Route("/api/events", events),
]
