"""All generated pages by their path below docs/; metrics.md needs a database with tables."""

from collections.abc import Callable, Mapping

from tests.docs.generate import (
    api,
    cli,
    configuration,
    events,
    faults,
    fields,
    metrics,
    origins,
    packages,
    signals,
)
from tests.docs.generate.markdown import DOCS

PAGES: Mapping[str, Callable[[], str]] = {
    "concepts/reliability.md": faults.render,
    "contributing/packages.md": packages.render,
    "reference/api.md": api.render,
    "reference/cli.md": cli.render,
    "reference/configuration.md": configuration.render,
    "reference/events.md": events.render,
    "reference/metrics.md": metrics.render,
    "reference/origins.md": origins.render,
    "reference/run-environment.md": configuration.render_run_environment,
    "reference/signals.md": signals.render,
    "reference/skill.md": fields.render_skill,
}


def write_all() -> list[str]:
    """Writes the pages that differ, and returns their paths."""
    changed = []
    for path, render in PAGES.items():
        text, place = render(), DOCS / path
        if not place.exists() or place.read_text() != text:
            place.write_text(text)
            changed.append(path)
    return changed
