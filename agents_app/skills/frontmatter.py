"""Splits SKILL.md into frontmatter and body."""

import re

from agents_app.skills.document import Document, SourceText
from agents_app.skills.errors import SkillError, SourcePlace
from agents_app.skills.yaml_reader import read_yaml

_RULE = re.compile(r"---[ \t]*\r?$", re.MULTILINE)
_LOOKS_LIKE_A_FIELD = re.compile(r"[ \t]*[A-Za-z][\w-]*[ \t]*:(?:[ \t]|\r?$)", re.MULTILINE)
_BLANK = " \t\r\n\f\v\ufeff"


def read_frontmatter(source: SourceText) -> tuple[Document, str]:
    """The fields and the body; a text without frontmatter is all body."""
    whole = Document(source.name), source.text
    cut = _find_parts(source.text)
    if cut is None:
        return whole
    start, end, body_start = cut
    # The line below the opening `---`, counted from 1.
    first_line = source.text.count("\n", 0, start) + 1
    root, document = read_yaml(source.text[start:end], source.name, first_line)
    if root is not None and not isinstance(root, dict):
        return whole  # two horizontal rules with prose between them
    return document, source.text[body_start:]


def _find_parts(text: str) -> tuple[int, int, int] | None:
    """The offsets of the start and the end of the YAML, and of the start of the body."""
    opening = len(text) - len(text.lstrip(_BLANK))
    if not (rule := _RULE.match(text, opening)) or rule.end() == len(text):
        return None
    start = rule.end() + 1
    for closing in _RULE.finditer(text, start):
        if text[closing.start() - 1] == "\n":
            return start, closing.start(), min(closing.end() + 1, len(text))
    return None


def unclosed_frontmatter(source: SourceText) -> SkillError | None:
    """The error of a file that opens frontmatter and never closes it, or None.

    Without this check such a file would be an agent without any field.
    """
    rule = _RULE.match(source.text, len(source.text) - len(source.text.lstrip(_BLANK)))
    if (
        not rule
        or _find_parts(source.text)
        or not _LOOKS_LIKE_A_FIELD.match(source.text, rule.end() + 1)
    ):
        return None
    line = source.text.count("\n", 0, rule.start()) + 1
    reason = "the frontmatter is not closed; add a line '---' below its last field"
    return SkillError(reason, SourcePlace(source.name, line))
