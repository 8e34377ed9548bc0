"""Who may talk to the studio: this machine, this browser, this page. The guard stands before every route.

* The ``Host`` must be a name of this machine (or one given with ``--allow-host``): a page elsewhere whose name is
  made to point here is turned away (DNS rebinding).
* A request that a page elsewhere sends is turned away by its ``Origin`` and by the browser's ``Sec-Fetch-Site``.
* The address that the program prints holds a token that is good for one visit; it becomes a cookie that scripts
  cannot read and that no other site's requests carry. Everything else needs that cookie.
"""

from __future__ import annotations

import secrets
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HERE = frozenset({"127.0.0.1", "localhost", "::1"})
READING = frozenset({"GET", "HEAD"})
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'; require-trusted-types-for 'script'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
}
STRANGER = (
    "This studio belongs to somebody else, or its address has been used already. "
    "Open the address that it printed when it was started.\n"
)


class Guard:
    """Let in who holds the cookie, or comes with the token for the first time."""

    def __init__(self, app: ASGIApp, token: str, cookie: str, hosts: frozenset[str] = HERE) -> None:
        self.app, self.cookie, self.hosts = app, cookie, hosts
        self._token: str | None = token
        self._session = secrets.token_urlsafe(32)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
                return
            await self.app(scope, receive, send)
            return
        answer = self._refuse(scope) or self._welcome(scope)
        await (answer or self.app)(scope, receive, _with_headers(send))

    def _refuse(self, scope: Scope) -> Response | None:
        """Turn away what does not come from a page of this very address."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if _host_name(host) not in self.hosts:
            return _no(403, "The studio does not answer under this name; give it with --allow-host.\n")
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != host:
            return _no(403, "Requests from other pages are refused.\n")
        if origin is None and scope["method"] not in READING:
            return _no(403, "A request that changes something must say where it comes from (Origin).\n")
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return _no(403, "Requests from other pages are refused.\n")
        return None

    def _welcome(self, scope: Scope) -> Response | None:
        """Exchange the token for the cookie; without either, there is nothing to see."""
        held = cookie_parser(Headers(scope=scope).get("cookie", "")).get(self.cookie, "")
        known = secrets.compare_digest(held.encode(), self._session.encode())
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if given and scope["method"] == "GET":
            fits = self._token is not None and secrets.compare_digest(given.encode(), self._token.encode())
            if fits or known:
                self._token = None if fits else self._token
                answer = RedirectResponse("./", status_code=303)
                # no path: the browser then sends it to this address and below it, also behind a proxy's prefix
                answer.set_cookie(self.cookie, self._session, path=None, httponly=True, samesite="strict")
                return answer
        return None if known else _no(403, STRANGER)


def _no(status: int, text: str) -> Response:
    return PlainTextResponse(text, status)


def _host_name(host: str) -> str:
    """Take the port off a Host header; an address of version 6 stands in brackets."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _with_headers(send: Send) -> Send:
    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return guarded
