"""Whether the name of a lock is a valid URI, by the rules of browsers and Node; pure."""

import ipaddress
import re
from urllib.parse import unquote_to_bytes

MAX_URI_LENGTH = 1024
INVALID_URI = "Invalid URI format: Invalid URL"
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):", re.ASCII)
_SCHEMES_WITH_HOST = frozenset({"http", "https", "ws", "wss", "ftp"})
_STRIPPED_CHARACTERS = "".join(map(chr, range(0x21)))
_IGNORED_CHARACTERS = str.maketrans("", "", "\t\n\r")
_FORBIDDEN_IN_HOST = frozenset("\0\t\n\r #/:<>?@[\\]^|")
_FORBIDDEN_IN_DOMAIN = _FORBIDDEN_IN_HOST | frozenset("%\x7f") | frozenset(map(chr, range(0x20)))
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]*|[0-9]+", re.ASCII)
_OCTETS = 4


def uri_problem(uri: str) -> str | None:
    """Why the text is not a URL for browsers and Node; None if it is one."""
    if len(uri) > MAX_URI_LENGTH:
        return f"Invalid URI format: more than {MAX_URI_LENGTH} characters"
    text = uri.strip(_STRIPPED_CHARACTERS).translate(_IGNORED_CHARACTERS)
    scheme = _SCHEME.match(text)
    if scheme is None:
        return INVALID_URI
    name, rest = scheme.group(1).lower(), text[scheme.end() :]
    return None if _has_valid_authority(name, rest) else INVALID_URI


def _has_valid_authority(scheme: str, rest: str) -> bool:
    if scheme in _SCHEMES_WITH_HOST:
        authority = re.split(r"[/\\?#]", rest.lstrip("/\\"), maxsplit=1)[0]
        return _is_authority(authority, domain=True)
    if scheme == "file":
        found = re.match(r"[/\\]{2}([^/\\?#]*)", rest)
        host = found.group(1) if found else ""
        # A drive letter belongs to the path.
        return not host or bool(re.fullmatch(r"[A-Za-z][:|]", host)) or _is_domain(host)
    if not rest.startswith("//"):
        return True
    authority = re.split(r"[/?#]", rest[2:], maxsplit=1)[0]
    return not authority or _is_authority(authority, domain=False)


def _is_authority(authority: str, *, domain: bool) -> bool:
    host = authority.rpartition("@")[2]
    name, port = host, ""
    if (colon := host.rfind(":")) > host.rfind("]"):
        name, port = host[:colon], host[colon + 1 :]
    if port and not (port.isascii() and port.isdigit() and int(port) <= 0xFFFF):
        return False
    return _is_domain(name) if domain else _is_opaque_host(name)


def _is_opaque_host(host: str) -> bool:
    if host.startswith("["):
        return _is_ipv6(host)
    return bool(host) and not _FORBIDDEN_IN_HOST & set(host)


def _is_domain(host: str) -> bool:
    if host.startswith("["):
        return _is_ipv6(host)
    decoded = unquote_to_bytes(host).decode("utf-8", "replace")
    if not decoded or _FORBIDDEN_IN_DOMAIN & set(decoded):
        return False
    labels = decoded.removesuffix(".").split(".")
    return _is_ipv4(labels) if _NUMBER.fullmatch(labels[-1]) else True


def _is_ipv6(host: str) -> bool:
    try:
        return host.endswith("]") and bool(ipaddress.IPv6Address(host[1:-1]))
    except ValueError:
        return False


def _is_ipv4(labels: list[str]) -> bool:
    """A host whose last label is a number is an IPv4 address: 1.2.3.4, but also 0x7f.1."""
    if len(labels) > _OCTETS or not all(map(_NUMBER.fullmatch, labels)):
        return False
    try:
        *first, last = [_ipv4_number(label) for label in labels]
    except ValueError:
        return False
    return all(number < 256 for number in first) and last < 256 ** (_OCTETS - len(first))


def _ipv4_number(label: str) -> int:
    if label[:2].lower() == "0x":
        return int(label[2:] or "0", 16)
    return int(label, 8) if len(label) > 1 and label.startswith("0") else int(label)
