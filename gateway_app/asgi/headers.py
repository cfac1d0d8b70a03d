"""The security headers of every response, and the headers of a request as text."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

RawHeaders = list[tuple[bytes, bytes]]

_NOTHING = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
# Both kinds of pages have inline styles: the bars of the admin, half of Swagger UI.
_PAGE = (
    "default-src 'self'; script-src 'self'{scripts}; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; object-src 'none'; base-uri 'self'; form-action 'self'; "
    "frame-ancestors 'none'"
)
# The longest prefix counts. Unfold's pages are built on Alpine.js, which compiles the expressions
# in their attributes; its build without eval cannot read the expressions that Unfold writes.
POLICIES = {
    "/": _NOTHING,
    "/admin/": _PAGE.format(scripts=" 'unsafe-eval'"),
    "/v1/docs": _PAGE.format(scripts=""),
}
_ALWAYS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
# Responses for programs: each is valid for one moment and one caller.
_NOT_CACHED = ("/v1", "/webhooks/", "/healthz", "/readyz", "/metrics")


class SecureHeaders:
    """Adds the headers that the application has not set.

    Works on raw headers: Starlette's MutableHeaders took 1.5 times as long per response.
    """

    def __init__(self, app: ASGIApp, hsts_seconds: int = 0) -> None:
        self.app = app
        always = dict(_ALWAYS)
        if hsts_seconds:
            always["strict-transport-security"] = f"max-age={hsts_seconds}"
        self.always = _raw(always)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        path = scope["path"]

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                given: RawHeaders = list(message.get("headers", ()))
                names = {name.lower() for name, _ in given}
                ours = [*self.always, *headers_for(path)]
                message["headers"] = given + [pair for pair in ours if pair[0] not in names]
            await send(message)

        await self.app(scope, receive, send_with_headers)


def headers_for(path: str) -> RawHeaders:
    prefix = max((known for known in POLICIES if path.startswith(known)), key=len, default="/")
    headers = _POLICY_HEADERS[prefix]
    return [*headers, _NO_STORE] if path.startswith(_NOT_CACHED) else headers


def _raw(headers: dict[str, str]) -> RawHeaders:
    return [(name.encode(), value.encode()) for name, value in headers.items()]


_POLICY_HEADERS = {
    prefix: _raw({"content-security-policy": policy}) for prefix, policy in POLICIES.items()
}
_NO_STORE = (b"cache-control", b"no-store")


def read_headers(scope: Scope) -> dict[str, str]:
    """Of a repeated header the last value counts, for the gateway as for signatures.

    Starlette's Headers return the first value, and took three times as long to convert."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
