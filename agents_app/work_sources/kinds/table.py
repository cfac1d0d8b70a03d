"""The kinds of work sources by the `type` in files; another kind is one file and one entry."""

from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter

from agents_app.work_sources.kinds.contract import SourceKind
from agents_app.work_sources.kinds.directory import DIRECTORY
from agents_app.work_sources.kinds.github import GITHUB
from agents_app.work_sources.kinds.jira import JIRA
from agents_app.work_sources.kinds.linear import LINEAR

KINDS: Mapping[str, SourceKind] = {
    "github": GITHUB,
    "linear": LINEAR,
    "jira": JIRA,
    "directory": DIRECTORY,
}


def read_settings(columns: Mapping[str, Any]) -> tuple[SourceKind, Any]:
    """The kind of a stored work source, and its settings; the columns were checked before."""
    kind = KINDS[columns["type"]]
    values = {name: value for name, value in columns.items() if name != "type"}
    return kind, TypeAdapter(kind.settings).validate_python(values)
