"""Checks the accessibility of the current page with axe."""

from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]
COUNTS = {"serious", "critical"}
# Select2 of Django's admin gives an empty choice no name.
NOT_OURS = ".select2-container"


def assert_accessible(page: Page) -> None:
    """No serious or critical finding of WCAG 2 A and AA."""
    found = findings(page)
    assert not found, "\n".join([page.url, *found])


def findings(page: Page) -> list[str]:
    """Axe is evaluated, not added as a script: that works under any content security policy."""
    options = {"runOnly": {"type": "tag", "values": RULES}, "resultTypes": ["violations"]}
    # Colours are measured as shown: end transitions, which would be measured half-way.
    page.evaluate("Promise.allSettled(document.getAnimations().map(each => each.finished))")
    found = Axe().run(page, {"exclude": [[NOT_OURS]]}, options).response["violations"]
    counting = [rule for rule in found if rule["impact"] in COUNTS]
    return [_finding_text(rule, node) for rule in counting for node in rule["nodes"]]


def _finding_text(rule: dict[str, Any], node: dict[str, Any]) -> str:
    checks = node["any"] + node["all"] + node["none"]
    because = "; ".join(check["message"] for check in checks)
    return f"{rule['id']} ({rule['impact']}): {node['html'][:160]} {because}"
