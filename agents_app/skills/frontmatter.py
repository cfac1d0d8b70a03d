"""SKILL.md split into frontmatter and body; what the fields mean is parse's."""

import re
from pathlib import Path
from typing import Any

from agents_app.skills.document import Document, SourceText
from agents_app.skills.errors import SkillError, SourcePlace
from agents_app.skills.yaml_reader import read_yaml

_RULE = re.compile(r"---[ \t]*\r?$", re.MULTILINE)
_LOOKS_LIKE_A_FIELD = re.compile(r"[ \t]*[A-Za-z][\w-]*[ \t]*:(?:[ \t]|\r?$)", re.MULTILINE)
_BLANK = " \t\r\n\f\v\ufeff"


def split_frontmatter(text: str) -> tuple[dict[str, Any], str]:
    """The data and the body; a text without frontmatter is all body."""
    document, body = read_frontmatter(SourceText(text, Path("SKILL.md")))
    return document.data, body


def read_frontmatter(source: SourceText) -> tuple[Document, str]:
    whole = Document(source.name), source.text
    cut = _cut(source.text)
    if cut is None:
        return whole
    start, end, body_start = cut
    # One line below the opening rule, counted from 1.
    first_line = source.text.count("\n", 0, start) + 1
    root, document = read_yaml(source.text[start:end], source.name, first_line)
    if root is not None and not isinstance(root, dict):
        return whole  # two horizontal rules with prose between them
    return document, source.text[body_start:]


def _cut(text: str) -> tuple[int, int, int] | None:
    """Where the YAML starts and ends, and where the body starts."""
    opening = len(text) - len(text.lstrip(_BLANK))
    if not (rule := _RULE.match(text, opening)) or rule.end() == len(text):
        return None
    start = rule.end() + 1
    for closing in _RULE.finditer(text, start):
        if text[closing.start() - 1] == "\n":
            return start, closing.start(), min(closing.end() + 1, len(text))
    return None


def unclosed(source: SourceText) -> SkillError | None:
    """A file that opens frontmatter and never closes it would be an agent without any field."""
    rule = _RULE.match(source.text, len(source.text) - len(source.text.lstrip(_BLANK)))
    if not rule or _cut(source.text) or not _LOOKS_LIKE_A_FIELD.match(source.text, rule.end() + 1):
        return None
    line = source.text.count("\n", 0, rule.start()) + 1
    reason = "the frontmatter is never closed; put a line '---' below its last field"
    return SkillError(reason, SourcePlace(source.name, line))
