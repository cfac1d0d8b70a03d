"""Headers of a delivery as people may see them: what proved who sent it stays here; pure."""

import re
from collections.abc import Mapping
from typing import Any

HIDDEN = "(not shown)"
_PROOF = re.compile(r"signature|secret|token|passw|auth|api-?key|cookie|credential")
# When it was signed proves nothing.
_HARMLESS = re.compile(r"-timestamp$")


def visible_headers(headers: Mapping[str, str], options: Mapping[str, Any]) -> dict[str, str]:
    """`options` are the source's: they may name a header of its own."""
    own = str(options.get("header", "")).lower()
    return {
        name: HIDDEN if name.lower() == own or _is_proof(name.lower()) else value
        for name, value in headers.items()
    }


def _is_proof(name: str) -> bool:
    return bool(_PROOF.search(name)) and not _HARMLESS.search(name)
