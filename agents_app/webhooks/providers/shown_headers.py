"""The headers of a delivery: credentials are not stored, signatures are not shown; pure."""

import re
from collections.abc import Mapping
from typing import Any

HIDDEN = "(not shown)"
# Not the name of an author, and not the time of a signature.
_CREDENTIAL = re.compile(
    r"(?:secret|token|passw|auth(?!or(?!iz))|api-?key|cookie|credential)(?!.*-timestamp$)"
)
_SIGNATURE = re.compile(r"signature(?!.*-timestamp$)")


def is_credential(name: str) -> bool:
    """Whether a header, by its name in lower case, is a credential, which must not be stored."""
    return _CREDENTIAL.search(name) is not None


def visible_headers(headers: Mapping[str, str], options: Mapping[str, Any]) -> dict[str, str]:
    """`options` of the source may name its own signature header, which is hidden, too."""
    own = str(options.get("header", "")).lower()
    return {
        name: HIDDEN if _is_hidden(name.lower(), own) else value for name, value in headers.items()
    }


def _is_hidden(name: str, own: str) -> bool:
    return name == own or is_credential(name) or _SIGNATURE.search(name) is not None
