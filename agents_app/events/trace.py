"""Reads the trace id of the W3C header `traceparent`; pure."""

import re

# Version ff and ids of zeros are forbidden; later versions may add fields at the end.
_TRACEPARENT = re.compile(
    r"(?!ff)(?P<version>[0-9a-f]{2})-(?!0{32})(?P<trace>[0-9a-f]{32})"
    r"-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?P<more>-.*)?",
    re.ASCII,
)


def trace_id_of(traceparent: str | None) -> str:
    """The trace id; empty if there is no header or it is not valid, which is not an error."""
    found = _TRACEPARENT.fullmatch((traceparent or "").strip(" \t"))
    if found is None or (found["version"] == "00" and found["more"] is not None):
        return ""
    return found["trace"]
