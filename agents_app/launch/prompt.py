"""Builds the prompt of a run: the agent's instructions, and the cause of the run as marked data."""

import json
import re
from collections.abc import Mapping
from typing import Any
from xml.sax.saxutils import quoteattr

_CLOSING_TAG = re.compile(r"<(?=\s*/\s*(?:params|prompt|context)\b)", re.IGNORECASE)
# Control characters that a terminal or a model could interpret; tabs and newlines stay.
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def build_prompt(
    instructions: str, params: Mapping[str, Any], trigger: str, prompt: str, context: str
) -> str:
    """Instructions come from the agent's file; everything else is data and says so."""
    parts = [instructions.strip()]
    if params:
        parts.append(_data("params", json.dumps(params, indent=2, ensure_ascii=False)))
    if prompt:
        parts.append(_data("prompt", _CONTROLS.sub("", prompt), trigger=trigger))
    if context:
        parts.append(_data("context", _CONTROLS.sub("", context), trigger=trigger))
    return "\n\n".join(part for part in parts if part) + "\n"


def _data(tag: str, text: str, **attributes: str) -> str:
    # A closing tag inside the data would end it early.
    safe = _CLOSING_TAG.sub(r"<\\", text)
    names = "".join(f" {name}={quoteattr(value)}" for name, value in attributes.items())
    return f"<{tag}{names}>\n{safe}\n</{tag}>"
