"""Searches for secrets wherever an installation stores or shows data."""

import base64
import re
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import redis

from agents_app.installation.redis_server import client_url, redis_url
from tests.parts.processes import tree_of
from tests.parts.stack_part import PrivateStack

Place = tuple[str, bytes]


def encodings_of(secret: str) -> list[bytes]:
    """The encodings of a secret in lower case and without line ends, as `found_in` compares."""
    raw = secret.encode()
    forms = [raw, raw.hex().encode(), "".join(f"%{byte:02x}" for byte in raw).encode()]
    forms.append(urllib.parse.quote(secret, safe="").encode())
    for before in range(3):
        # Characters that depend on the neighbours are removed.
        forms.append(base64.b64encode(bytes(before) + raw)[4:-4])
    return [form.lower() for form in forms]


def found_in(places: Iterator[Place], secrets: list[str]) -> list[str]:
    forms = [form for secret in secrets for form in encodings_of(secret)]
    found = []
    for where, content in places:
        looked_at = re.sub(rb"[\r\n]", b"", content).lower()
        found += [f"{form!r} in {where}" for form in forms if form in looked_at]
    return found


def rows(stack: PrivateStack) -> Iterator[Place]:
    """Every column of every table."""
    if stack.database_url.startswith("sqlite"):
        names = stack.rows("SELECT name FROM sqlite_master WHERE type = 'table'")
    else:
        names = stack.rows(
            "SELECT table_name AS name FROM information_schema.tables "
            "WHERE table_schema = current_schema()"
        )
    for table in (row["name"] for row in names):
        for row in stack.rows(f'SELECT * FROM "{table}"'):
            for column, value in row.items():
                is_bytes = isinstance(value, bytes | memoryview)
                yield f"{table}.{column}", bytes(value) if is_bytes else str(value).encode()


def files(stack: PrivateStack) -> Iterator[Place]:
    """Logs, files of the database with deleted rows, and workdirs of runs."""
    for path in [*stack.data.rglob("*"), *stack.data.parent.glob("*.log")]:
        with suppress(OSError):
            if path.is_file():
                yield str(path), path.read_bytes()


def redis_keys(stack: PrivateStack) -> Iterator[Place]:
    client = redis.Redis.from_url(client_url(redis_url(stack.conf)))
    readers = {
        b"string": client.get,
        b"list": lambda key: client.lrange(key, 0, -1),
        b"set": client.smembers,
        b"zset": lambda key: client.zrange(key, 0, -1),
        b"hash": client.hgetall,
        b"stream": client.xrange,
    }
    with client:
        for key in client.scan_iter():
            yield f"redis {key!r}", key + str(readers[client.type(key)](key)).encode()


def processes(up: int, but_below: int) -> Iterator[Place]:
    """Arguments and environment of the processes of Drover, except the processes of runs."""
    for pid in set(tree_of(up)) - set(tree_of(but_below)):
        for name in ("cmdline", "environ"):
            with suppress(OSError):
                yield f"{name} of {pid}", Path(f"/proc/{pid}/{name}").read_bytes()


class Visitor:
    """A client of the admin and of the API."""

    def __init__(self, stack: PrivateStack, token: str) -> None:
        self._url, self._token = stack.url, token
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())

    def log_in(self, password: str) -> None:
        shown = self.fill_in("/admin/login/?next=/admin/", username="admin", password=password)
        assert b"logout" in shown

    def fill_in(self, path: str, **fields: object) -> bytes:
        """Submit a form; returns the next page."""
        asked = re.search(rb'name="csrfmiddlewaretoken" value="(\w+)"', self.page(path)[1])
        assert asked is not None
        form = {**fields, "csrfmiddlewaretoken": asked[1].decode()}
        return self.post(path, urllib.parse.urlencode(form).encode(), {})[1]

    def page(self, path: str) -> Place:
        return self._open(path)

    def answer(self, path: str) -> Place:
        return self._open(path, headers={"Authorization": f"Bearer {self._token}"})

    def post(self, path: str, body: bytes, headers: dict[str, str]) -> Place:
        return self._open(path, body, headers)

    def _open(
        self, path: str, data: bytes | None = None, headers: dict[str, str] | None = None
    ) -> Place:
        request = urllib.request.Request(f"{self._url}{path}", data, headers or {})
        with self._opener.open(request, timeout=20) as answer:
            return path, answer.read()
