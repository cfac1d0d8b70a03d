"""What a lock may be named, and who waits for whom in a circle; pure."""

import ipaddress
import re
from collections.abc import Mapping
from urllib.parse import unquote_to_bytes

LONGEST_URI = 1024
INVALID = "Invalid URI format: Invalid URL"
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):", re.ASCII)
_HOST_NEEDED = frozenset({"http", "https", "ws", "wss", "ftp"})
_STRIPPED = "".join(map(chr, range(0x21)))
_DROPPED = str.maketrans("", "", "\t\n\r")
_NEVER_IN_A_HOST = frozenset("\0\t\n\r #/:<>?@[\\]^|")
_NEVER_IN_A_DOMAIN = _NEVER_IN_A_HOST | frozenset("%\x7f") | frozenset(map(chr, range(0x20)))
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]*|[0-9]+", re.ASCII)
_OCTETS = 4


# --- names ----------------------------------------------------------------------------------


def uri_problem(uri: str) -> str | None:
    """What is wrong with it as a URL, as browsers and Node read one; None: nothing."""
    if len(uri) > LONGEST_URI:
        return f"Invalid URI format: more than {LONGEST_URI} characters"
    text = uri.strip(_STRIPPED).translate(_DROPPED)
    scheme = _SCHEME.match(text)
    if scheme is None:
        return INVALID
    name, rest = scheme.group(1).lower(), text[scheme.end() :]
    return None if _has_good_authority(name, rest) else INVALID


def _has_good_authority(scheme: str, rest: str) -> bool:
    if scheme in _HOST_NEEDED:
        authority = re.split(r"[/\\?#]", rest.lstrip("/\\"), maxsplit=1)[0]
        return _is_authority(authority, domain=True)
    if scheme == "file":
        found = re.match(r"[/\\]{2}([^/\\?#]*)", rest)
        host = found.group(1) if found else ""
        # A drive's letter is a path.
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
    return bool(host) and not _NEVER_IN_A_HOST & set(host)


def _is_domain(host: str) -> bool:
    if host.startswith("["):
        return _is_ipv6(host)
    decoded = unquote_to_bytes(host).decode("utf-8", "replace")
    if not decoded or _NEVER_IN_A_DOMAIN & set(decoded):
        return False
    labels = decoded.removesuffix(".").split(".")
    return _is_ipv4(labels) if _NUMBER.fullmatch(labels[-1]) else True


def _is_ipv6(host: str) -> bool:
    try:
        return host.endswith("]") and bool(ipaddress.IPv6Address(host[1:-1]))
    except ValueError:
        return False


def _is_ipv4(labels: list[str]) -> bool:
    """A last part that is a number makes all of it one: 1.2.3.4, but also 0x7f.1."""
    if len(labels) > _OCTETS or not all(map(_NUMBER.fullmatch, labels)):
        return False
    try:
        *first, last = [_whole(label) for label in labels]
    except ValueError:
        return False
    return all(number < 256 for number in first) and last < 256 ** (_OCTETS - len(first))


def _whole(label: str) -> int:
    if label[:2].lower() == "0x":
        return int(label[2:] or "0", 16)
    return int(label, 8) if len(label) > 1 and label.startswith("0") else int(label)


# --- circles --------------------------------------------------------------------------------


def find_cycle(
    asker: str, uri: str, holders: Mapping[str, str], waits: Mapping[str, str]
) -> list[str] | None:
    """From the asker over what it wants to who has it, and so on, if that leads back to the asker.

    `holders` has the holder of each URI, `waits` what each holder was last refused.
    """
    path, seen = [asker], {asker}
    while (holder := holders.get(uri)) is not None:
        path.append(uri)
        if holder == asker:
            return path
        if holder in seen or holder not in waits:
            return None
        path.append(holder)
        seen.add(holder)
        uri = waits[holder]
    return None
