"""Hostile requests to a real server: refused, never a 500."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.gateway_app.raw_server import RawServer
from tests.parts.stack_part import PrivateStack

SKILL = '---\ndescription: Says hello\ncommand: ["true"]\n---\nSay hello.\n'
MEGABYTE = 2**20


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, migrated_database: Callable[[Path], str]
) -> Iterator[RawServer]:
    directory = tmp_path_factory.mktemp("hardening")
    url = migrated_database(directory / "data")
    with PrivateStack(directory, url, DROVER_BODY_SECONDS="1") as stack:
        stack.write_agent("hello", SKILL)
        assert stack.manage("discover", "--sync").returncode == 0
        stack.start("gateway")
        yield RawServer(stack)


# --- bodies ---------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/v1/agents/hello/run", "/v1/nothing", "/admin/login/"])
@pytest.mark.parametrize("announced", [True, False])
def test_a_body_that_is_too_large_is_refused_and_not_written_to_disk(
    server: RawServer, path: str, announced: bool
):
    """Guard: counted in front of Django, which spools bodies of any length before a view."""
    # Without a valid token the API refuses a request before it reads the body.
    bearer = f"Authorization: Bearer {server.token}"
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{bearer}\r\n".encode()
    before = server.written_bytes()
    if announced:
        answer = server.send_bytes(
            head + f"Content-Length: {50 * MEGABYTE}\r\n\r\n".encode(), b"x" * 100
        )
    else:
        chunk = b"100000\r\n" + b"x" * MEGABYTE + b"\r\n"
        answer = server.send_bytes(head + b"Transfer-Encoding: chunked\r\n\r\n", *[chunk] * 20)
    assert (answer.status, answer.code, answer.closed) == (413, "too_large", True)
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert server.written_bytes() - before < MEGABYTE


@pytest.mark.parametrize("path", ["/v1/agents/hello/run", "/admin/login/"])
def test_a_body_that_is_not_sent_in_time_is_refused(server: RawServer, path: str):
    lines = f"Host: 127.0.0.1\r\nAuthorization: Bearer {server.token}\r\nContent-Length: 10"
    head = f"POST {path} HTTP/1.1\r\n{lines}\r\n\r\n"
    answer = server.send_bytes(head.encode(), b"{")
    assert (answer.status, answer.code, answer.closed) == (408, "too_slow", True)


@pytest.mark.parametrize(
    "lengths",
    [
        "Content-Length: 2\r\nContent-Length: 30\r\n",
        "Content-Length: 2, 30\r\n",
        "Content-Length: -2\r\n",
        "Content-Length: +2\r\n",
        "Content-Length: 0x2\r\n",
        "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 2\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding : chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
    ],
)
def test_a_body_with_two_lengths_is_refused_and_the_rest_is_not_read(
    server: RawServer, lengths: str
):
    """A proxy may use the other length and take the next request for the rest of this body."""
    head = f"POST /v1/agents HTTP/1.1\r\nHost: 127.0.0.1\r\n{lengths}\r\n".encode()
    rest = b"0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    # In one piece: data that arrives after the server closed resets the connection.
    answer = server.send_bytes(head + rest)
    assert 400 <= answer.status <= 501 and answer.status != 500
    assert b'"ok"' not in answer.body and answer.closed


def test_deep_and_wide_json_is_refused(server: RawServer):
    for body in (b"[" * 400_000, b'{"a":' * 150_000, b"1" * 900_000, b'"' + b"\\u0000" * 100_000):
        bearer = f"Authorization: Bearer {server.token}"
        answer = server.request("POST", "/v1/agents/hello/run", bearer, body=body)
        assert answer.status == 400, body[:10]


def test_thousands_of_fields_in_a_form_are_refused(server: RawServer, cookie: str):
    body = b"&".join(b"f%d=1" % number for number in range(20_000))
    form = "Content-Type: application/x-www-form-urlencoded"
    assert server.request("POST", "/admin/agents/", cookie, form, body=body).status in {400, 403}
    parts = b"".join(
        b'--x\r\nContent-Disposition: form-data; name="f"; filename="g"\r\n\r\n1\r\n'
        for _ in range(20_000)
    )
    form = "Content-Type: multipart/form-data; boundary=x"
    answer = server.request("POST", "/admin/agents/", cookie, form, body=parts + b"--x--")
    assert answer.status in {400, 403}


LARGE = b"x=" + b"y" * 20_000
FORM = "Content-Type: application/x-www-form-urlencoded"


@pytest.mark.parametrize("framing", [f"Content-Length: {len(LARGE)}", "Transfer-Encoding: chunked"])
@pytest.mark.parametrize(
    ("path", "status"),
    [
        *(("/admin/login/", 413), ("/admin/agents/", 413), ("/admin/nothing/", 413), ("/", 413)),
        *(("/healthz", 413), ("/metrics", 413), ("/nothing", 413), ("/v1/agents/hello/run", 401)),
    ],
)
def test_only_small_bodies_are_read_of_a_client_that_is_not_logged_in(
    server: RawServer, cookie: str, path: str, status: int, framing: str
):
    """Guard: nothing is read, so the answer comes although the body does not."""
    name = cookie.partition("drover_session")[2].partition("=")[0]
    for line in ("X-None: 1", f"Cookie: drover_session{name}=abcdefghijklmnopqrstuvwxyz012345"):
        head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{line}\r\n{FORM}\r\n{framing}\r\n\r\n"
        answer = server.send_bytes(head.encode())
        assert (answer.status, answer.closed) == (status, True)


def test_a_user_who_is_logged_in_may_send_a_large_form(server: RawServer, cookie: str):
    """The form has no CSRF token, which only a view that has read it can miss."""
    assert server.request("POST", "/admin/agents/", cookie, FORM, body=LARGE).status == 403
    assert server.request("POST", "/v1/agents/hello/pause", cookie, body=LARGE).code == "csrf"
    assert server.request("POST", "/admin/login/", cookie, FORM, body=LARGE).code == "too_large"


# --- headers and paths ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "lines",
    [
        [f"X-Long: {'x' * 200_000}"],
        [f"X-{number}: {'x' * 100}" for number in range(5_000)],
        [f"Cookie: {'a=b; ' * 40_000}"],
    ],
    ids=["long", "many", "cookies"],
)
def test_headers_that_are_too_long_are_refused(server: RawServer, lines: list[str]):
    assert server.request("GET", "/healthz", *lines).status in {0, 400, 431}
    assert server.request("GET", "/healthz").status == 200


@pytest.mark.parametrize("path", ["/v1/runs", "/admin/login/", "/healthz", "/webhooks/github"])
def test_a_long_query_is_not_a_500(server: RawServer, path: str):
    for query in ("x" * 50_000, "&".join(f"f{n}=1" for n in range(8_000)), "%00%ff%0a&=&=&;"):
        assert server.request("GET", f"{path}?{query}").status < 500


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1@evil.example",
        "127.0.0.1:80:80",
        "evil.example#127.0.0.1",
        " ",
        "%00",
    ],
)
@pytest.mark.parametrize("path", ["/", "/admin/login/", "/v1/agents"])
def test_an_unknown_host_is_refused_and_not_repeated(server: RawServer, host: str, path: str):
    head = f"GET {path} HTTP/1.1\r\nHost: {host}\r\nX-Forwarded-Host: evil.example\r\n"
    answer = server.send_bytes(f"{head}Connection: close\r\n\r\n".encode())
    assert answer.status == 400
    assert b"evil" not in answer.body
    if path.startswith("/v1") and answer.headers["content-type"] == "application/json":
        assert answer.code == "invalid"


def test_forwarding_headers_of_an_untrusted_client_are_ignored(server: RawServer):
    """Only headers of DROVER_TRUSTED_PROXIES are used."""
    lines = ("X-Forwarded-Host: evil.example", "X-Forwarded-Proto: https", "X-Forwarded-Port: 1")
    answer = server.request("GET", "/", *lines)
    assert (answer.status, answer.headers["location"]) == (302, "/admin/")


@pytest.mark.parametrize(
    "path",
    [
        *("//admin/", "/admin//", "/%2e%2e/%2e%2e/etc/passwd", "/../../etc/passwd", "/./admin/"),
        *("/static/../manage.py", "/static/%2e%2e/%2e%2e/manage.py", "/static/..%2f..%2fmanage.py"),
        *("/v1/docs/..%2f..%2f..%2fmanage.py", "/v1/docs/%2e%2e", "/static//etc/passwd"),
        *("/%00", "/admin/%00", "/v1/%00", "/static/%00", "/webhooks/%00", "/webhooks/a%0ab"),
        *("/%0d%0aX-Evil:%201", "/admin/login/%0d%0aSet-Cookie:%20a=b", "/%ff%fe", "/v1/%ff"),
        *("/admin/runs/%00/change/", "/;/admin/", "/admin;/", "/ADMIN/", "*"),
        *("http://evil.example/admin/", "/" + "a/" * 5_000, "/" + "%2e" * 5_000),
    ],
)
def test_an_unusual_path_is_refused_or_redirected_on_this_host(server: RawServer, path: str):
    answer = server.request("GET", path)
    assert answer.status in {301, 302, 400, 404}
    assert "x-evil" not in answer.headers and "set-cookie" not in answer.headers
    assert "evil" not in answer.headers.get("location", "")
    assert not answer.headers.get("location", "").startswith("//")
    assert b"root:" not in answer.body and b"django" not in answer.body.lower()


@pytest.mark.parametrize("method", ["TRACE", "CONNECT", "PROPFIND", "FOO", "get", "M-SEARCH"])
@pytest.mark.parametrize("path", ["/v1/agents", "/admin/login/", "/webhooks/github", "/healthz"])
def test_an_unknown_method_is_not_a_500(server: RawServer, method: str, path: str):
    answer = server.request(method, path)
    assert answer.status < 500
    assert b"Connection: close" not in answer.body, "a response must not repeat the request"


def test_a_method_cannot_be_changed_by_a_header_or_a_field(server: RawServer):
    lines = (
        f"Authorization: Bearer {server.token}",
        "X-HTTP-Method-Override: POST",
        "X-Method-Override: POST",
    )
    answer = server.request("GET", "/v1/agents/hello/run?_method=POST", *lines)
    assert (answer.status, answer.code) == (405, "method_not_allowed")


# --- authentication -------------------------------------------------------------------------


def test_api_responses_set_no_cookie(server: RawServer):
    bearer = f"Authorization: Bearer {server.token}"
    answers = [
        server.request("GET", "/v1/agents", bearer),
        server.request("GET", "/v1/agents"),
        server.request("GET", "/v1/nothing"),
        server.request("POST", "/webhooks/github", body=b"{}"),
        server.request("GET", "/healthz"),
        server.request("GET", "/readyz"),
    ]
    for answer in answers:
        assert "set-cookie" not in answer.headers
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")
        assert "server" not in answer.headers


def test_cookies_are_ignored_beside_an_authorization_header(server: RawServer, cookie: str):
    assert server.request("GET", "/v1/agents", cookie).status == 200
    for header in ("Bearer wrong", "Basic YTpi", "Bearer", ""):
        assert server.request("GET", "/v1/agents", cookie, f"Authorization: {header}").status == 401


def test_a_session_without_a_csrf_token_changes_nothing(server: RawServer, cookie: str):
    answer = server.request("POST", "/v1/agents/hello/pause", cookie)
    assert (answer.status, answer.code) == (403, "csrf")
    token = cookie.partition("drover_csrf")[2].partition("=")[2].partition(";")[0]
    foreign = ("Origin: https://evil.example", f"X-CSRFToken: {token}")
    assert server.request("POST", "/v1/agents/hello/pause", cookie, *foreign).code == "csrf"
    assert server.request("POST", "/admin/logout/", cookie).status == 403
    assert server.request("GET", "/v1/agents", cookie).status == 200


@pytest.fixture(scope="module")
def cookie(server: RawServer) -> str:
    """The cookies of a user who is logged in to the admin."""
    made = server.stack.manage(
        *("shell", "-v0", "-c"),
        "from agents_app.stack.first_start import ensure_admin; ensure_admin('open-sesame')",
    )
    assert made.returncode == 0, made.stderr
    page = server.request("GET", "/admin/login/")
    csrf = page.headers["set-cookie"].partition(";")[0]
    form = f"csrfmiddlewaretoken={csrf.partition('=')[2]}&username=admin&password=open-sesame"
    kind = "Content-Type: application/x-www-form-urlencoded"
    origin = f"Origin: {server.stack.url}"
    host = f"POST /admin/login/ HTTP/1.1\r\nHost: 127.0.0.1:{server.stack.conf.port}\r\n"
    head = f"{host}{kind}\r\n{origin}\r\nCookie: {csrf}\r\nConnection: close\r\n"
    answer = server.send_bytes(f"{head}Content-Length: {len(form)}\r\n\r\n{form}".encode())
    assert answer.status == 302, answer.body[:500]
    given = answer.headers["set-cookie"].replace(", drover_", "\ndrover_").splitlines()
    return "Cookie: " + "; ".join(one.partition(";")[0] for one in given)
