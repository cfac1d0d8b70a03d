"""The W3C header `traceparent`: whose story a request belongs to; pure, and no text upsets it."""

import re

# Version ff is forbidden, and so are ids of zeros; versions to come may add fields at the end.
_TRACEPARENT = re.compile(
    r"(?!ff)(?P<version>[0-9a-f]{2})-(?!0{32})(?P<trace>[0-9a-f]{32})"
    r"-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?P<more>-.*)?",
    re.ASCII,
)


def trace_id_of(traceparent: str | None) -> str:
    """Empty if there is none, or none that can be read: that is nobody's error."""
    found = _TRACEPARENT.fullmatch((traceparent or "").strip(" \t"))
    if found is None or (found["version"] == "00" and found["more"] is not None):
        return ""
    return found["trace"]
