"""HTTP requests to URLs from files of a project: only to public addresses of the internet.

A name is resolved once, every address of it is checked, and the connection goes to one of these
addresses; a second resolution could return another address. Redirects are not followed. Hosts
that an operator has listed in DROVER_OUTGOING_HOSTS may have any address.
"""

import asyncio
import re
import socket
import ssl
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit

import certifi

from agents_app.errors import DroverError

if TYPE_CHECKING:
    import httpx

Address = IPv4Address | IPv6Address
SECONDS = 5.0
LARGEST_REPLY = 64 * 1024
LONGEST_URL = 2000
# Other ports below 1024 belong to mail, file and directory servers, which may act on HTTP text.
LOW_PORTS = frozenset({80, 443})
PORTS = {"http": 80, "https": 443}
# Addresses that some versions of Python take for public: those that contain an IPv4 address (6to4,
# Teredo), those reserved for protocols and documentation, and the metadata service of a cloud.
INWARD = (
    *("192.0.0.0/24", "192.88.99.0/24", "168.63.129.16/32"),
    *("2001::/23", "2002::/16", "3fff::/20"),
)
_INWARD = tuple(map(ip_network, INWARD))
OPEN_V6 = ip_network("2000::/3")
_PLAIN = re.compile(r"[\x21-\x5b\x5d-\x7e]+")
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"(?:{_LABEL}\.)*{_LABEL}")
# Old notations of IPv4 addresses that resolvers accept: 2130706433, 0x7f.1, 0177.0.0.1.
_ENDS_IN_A_NUMBER = re.compile(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)")


class Blocked(DroverError):
    """The URL or its address is not allowed."""

    code = "blocked"


class Unreachable(DroverError):
    """The host did not answer in time, or not with HTTP."""

    code = "unreachable"
    permanent = False


@dataclass(frozen=True, slots=True)
class OutgoingTarget:
    """The parts of a URL that is allowed as far as its text shows."""

    scheme: str
    host: str
    port: int
    path: str
    trusted: bool

    @property
    def host_header(self) -> str:
        name = f"[{self.host}]" if ":" in self.host else self.host
        return name if self.port == PORTS[self.scheme] else f"{name}:{self.port}"


@dataclass(frozen=True, slots=True)
class OutgoingReply:
    """The names of the headers are in lower case."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


# --- the text of a URL ----------------------------------------------------------------------


def read_target(url: str, trusted_hosts: Collection[str] = ()) -> OutgoingTarget:
    if len(url) > LONGEST_URL or not _PLAIN.fullmatch(url):
        raise Blocked("the URL is too long or contains characters that are not allowed in a URL")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise Blocked(f"the URL is not valid: {error}") from None
    if parts.scheme not in PORTS:
        raise Blocked("the URL must begin with http:// or https://")
    if "@" in parts.netloc:
        raise Blocked("the URL must not contain a user or a password")
    host = _host(parts)
    port = PORTS[parts.scheme] if port is None else port
    trusted = bool({host, f"{host}:{port}"} & set(trusted_hosts))
    if not trusted and port < 1024 and port not in LOW_PORTS:
        raise Blocked(f"port {port} is not allowed: use 80, 443, or 1024 and above")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return OutgoingTarget(parts.scheme, host, port, path, trusted)


def _host(parts: SplitResult) -> str:
    host = (parts.hostname or "").removesuffix(".")
    if _is_address(host):
        return str(ip_address(host))
    if _ENDS_IN_A_NUMBER.fullmatch(host):
        raise Blocked("an IPv4 address must have four decimal numbers, an IPv6 address brackets")
    if not _NAME.fullmatch(host):
        raise Blocked("the URL has no host or an invalid one")
    return host


def _is_address(host: str) -> bool:
    try:
        return "%" not in host and bool(ip_address(host))
    except ValueError:
        return False


# --- its addresses --------------------------------------------------------------------------


def is_open(address: Address) -> bool:
    """Whether the address is public."""
    if isinstance(address, IPv6Address) and address not in OPEN_V6:
        return False
    if address.is_multicast or address.is_reserved or not address.is_global:
        return False
    return not any(address in network for network in _INWARD if network.version == address.version)


async def resolve(target: OutgoingTarget) -> list[Address]:
    """All addresses of the host; raises Blocked if one of them is not public."""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise Unreachable(f"{target.host} cannot be resolved: {error}") from None
    addresses = list(
        dict.fromkeys(ip_address(str(entry[4][0]).partition("%")[0]) for entry in found)
    )
    if not target.trusted and not all(map(is_open, addresses)):
        raise Blocked(
            f"{target.host} has an address that is not public; to allow it, add it to "
            "DROVER_OUTGOING_HOSTS"
        )
    return addresses


# --- the request ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OutgoingRequest:
    """The URL and the headers may contain secrets: they are in no message."""

    url: str = field(repr=False)
    body: bytes | None = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    seconds: float = SECONDS
    method: str = "POST"
    # Of the answer; the rest is not read.
    largest: int = LARGEST_REPLY


async def post(
    url: str, body: bytes, headers: Mapping[str, str], trusted_hosts: Collection[str] = ()
) -> OutgoingReply:
    """The response, whatever its status; takes at most `SECONDS`."""
    return await _send(OutgoingRequest(url, body, headers, SECONDS), trusted_hosts)


def send_and_wait(request: OutgoingRequest, trusted_hosts: Collection[str]) -> OutgoingReply:
    """Like `post`, for a thread without an event loop."""
    return asyncio.run(_send(request, trusted_hosts))


async def _send(request: OutgoingRequest, trusted_hosts: Collection[str]) -> OutgoingReply:
    target = read_target(request.url, trusted_hosts)
    try:
        async with asyncio.timeout(request.seconds):
            return await _send_to_first(target, await resolve(target), request)
    except TimeoutError:
        raise Unreachable(f"{target.host} has not answered after {request.seconds:g} s") from None


async def _send_to_first(
    target: OutgoingTarget, addresses: list[Address], request: OutgoingRequest
) -> OutgoingReply:
    # Imported at the first request: it takes longer to load than beat takes to start.
    import httpx

    own = {"Host": target.host_header, "Accept-Encoding": "identity", "User-Agent": "Drover"}
    # Without the proxies of the environment: they would resolve the name themselves.
    async with httpx.AsyncClient(
        verify=_trust(), trust_env=False, follow_redirects=False, timeout=request.seconds
    ) as client:
        for address in addresses:
            try:
                return await _send_to(client, target, address, request, own)
            except httpx.ConnectError as error:
                problem = f"{target.host} cannot be reached: {error}"
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                raise Unreachable(f"{target.host}: {error or type(error).__name__}") from None
    raise Unreachable(problem if addresses else f"{target.host} has no address")


async def _send_to(
    client: "httpx.AsyncClient",
    target: OutgoingTarget,
    address: Address,
    request: OutgoingRequest,
    own: Mapping[str, str],
) -> OutgoingReply:
    literal = f"[{address}]" if address.version == 6 else str(address)
    url = f"{target.scheme}://{literal}:{target.port}{target.path}"
    # The certificate must be for the name, although the connection goes to the address.
    named = {"sni_hostname": target.host}
    async with client.stream(
        request.method,
        url,
        content=request.body,
        headers={**request.headers, **own},
        extensions=named,
    ) as response:
        headers = {name.lower(): value for name, value in response.headers.items()}
        body = await _first_bytes(response, request.largest)
        return OutgoingReply(response.status_code, body, headers)


async def _first_bytes(response: "httpx.Response", largest: int) -> bytes:
    """The first bytes as received, not decompressed: a few bytes could become many."""
    read = b""
    async for piece in response.aiter_raw():
        read += piece
        if len(read) >= largest:
            break
    return read[:largest]


@lru_cache(maxsize=1)
def _trust() -> ssl.SSLContext:
    """The authorities that browsers trust and those that this machine trusts."""
    context = ssl.create_default_context(cafile=certifi.where())
    context.load_default_certs()
    return context
