"""The headers of a delivery that users may see: signatures and secrets are hidden; pure."""

import re
from collections.abc import Mapping
from typing import Any

HIDDEN = "(not shown)"
_SECRET_NAMES = re.compile(r"signature|secret|token|passw|auth|api-?key|cookie|credential")
# The time of a signature is not secret.
_TIMESTAMP = re.compile(r"-timestamp$")


def visible_headers(headers: Mapping[str, str], options: Mapping[str, Any]) -> dict[str, str]:
    """`options` of the source may name its own signature header, which is hidden, too."""
    own = str(options.get("header", "")).lower()
    return {
        name: HIDDEN if name.lower() == own or _is_secret(name.lower()) else value
        for name, value in headers.items()
    }


def _is_secret(name: str) -> bool:
    return bool(_SECRET_NAMES.search(name)) and not _TIMESTAMP.search(name)
