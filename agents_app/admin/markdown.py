"""Markdown of an agent's file as safe HTML: no raw HTML, no images, only web links."""

import re
from collections.abc import Sequence
from typing import Any

from django.utils.safestring import SafeString
from markdown_it import MarkdownIt
from markdown_it.token import Token

_WEB = re.compile(r"(https?:|mailto:)", re.IGNORECASE)
# The page uses h1 and h2: the headings of a file start at h3.
LOWER = {"h1": "h3", "h2": "h4", "h3": "h5", "h4": "h6", "h5": "h6"}


def _reader() -> MarkdownIt:
    reader = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    # An image would be loaded from a third party: it is shown as a link.
    reader.disable("image")
    # A refused link stays plain text.
    reader.validateLink = lambda url: _WEB.match(url) is not None  # type: ignore[method-assign]
    reader.add_render_rule("link_open", _link)
    return reader


def _link(self: Any, tokens: Sequence[Token], place: int, options: Any, _env: Any) -> str:
    tokens[place].attrSet("rel", "noopener noreferrer nofollow")
    tokens[place].attrSet("target", "_blank")
    return str(self.renderToken(tokens, place, options, _env))


_READER = _reader()


def as_html(text: str) -> SafeString:
    """Safe: the parser escapes all text and creates only its own tags."""
    tokens = _READER.parse(text)
    for token in tokens:
        token.tag = (
            LOWER.get(token.tag, token.tag) if token.type.startswith("heading_") else token.tag
        )
    return SafeString(_READER.renderer.render(tokens, _READER.options, {}))
