"""`work_source` of a herdctl agent or schedule as a work source of Drover; pure."""

from typing import Any

from agents_app.formats.herdctl.hooks import Say
from agents_app.skills import Document, KeyPath, Layer, Problems, read_work_source

DEFAULT_TOKEN = "GITHUB_TOKEN"  # noqa: S105
_FIELDS = ("type", "repo", "labels", "exclude_labels", "cleanup_on_failure")


def work_source_fields(
    table: dict[str, Any], document: Document, at: KeyPath, say: Say
) -> dict[str, Any] | None:
    """The field `work_source` of Drover; None after a report if Drover cannot use the source.

    `table` has its variables replaced. Without `exclude_labels`, Drover's own apply.
    """
    if table.get("cleanup_in_progress") is not None:
        why = "Drover makes the issues of interrupted runs ready again by itself"
        say((*at, "cleanup_in_progress"), why, "remove the field")
    if not table.get("repo"):
        say(at, "names no repository, so that it is left out", "add `repo: owner/name`")
        return None
    token = (table.get("auth") or {}).get("token_env") or DEFAULT_TOKEN
    fields = {name: table[name] for name in _FIELDS if table.get(name) is not None}
    fields["auth"] = f"env:{token}"
    problems = Problems()
    if read_work_source(fields, Layer(document, problems), at) is None:
        for problem in problems.found:
            why = problem.reason.partition(": ")[2]
            say(at, f"the work source is left out: {why}", "correct it")
        return None
    return fields
