"""Screenshots of the admin: python -m tests.browser.take_screenshots [DIRECTORY]

Starts a private Drover with the example agents, and removes it afterwards.
"""

import argparse
import hmac
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import httpx
from playwright.sync_api import Browser, Page, expect

from agents_app.conf import ROOT
from tests.browser.chromium import chromium, chromium_path, log_in
from tests.parts.stack_part import PrivateStack
from tests.parts.waiting import wait_for

ColorScheme = Literal["light", "dark"]
WIDTH, HEIGHT, TALLEST = 1280, 800, 1000
PHONE_WIDTH, PHONE_HEIGHT = 390, 844
# Every example with a schedule runs within this time.
LIVE_SECONDS = 75.0
READY_SECONDS = 120


LISTENER = """---
description: Reads what arrives from GitHub
command: [sh, -c, "echo reading; sleep 1; echo done"]
webhooks:
  - source: github
    {filters}
---
Read it.
"""
SECRET = "a secret that only this machine knows"
SOURCE = """
[webhooks.github]
type = "github"
secrets = ["file:secret"]
"""
RULE_WITH_OUTPUT = "SELECT id FROM drover_rule WHERE name = 'disk' AND tail <> ''"
ISSUE: dict[str, Any] = {
    **{"action": "opened", "repository": {"full_name": "acme/site"}, "sender": {"login": "ann"}},
    **{"issue": {"number": 7, "title": "The report is empty", "labels": [{"name": "question"}]}},
}


@dataclass(frozen=True)
class Picture:
    name: str
    path: str
    look: ColorScheme = "light"
    phone: bool = False
    # The heading to scroll to; empty: the top of the page.
    heading: str = ""
    # Performed on the page before the screenshot.
    act: Callable[[Page], None] | None = None


# --- a fleet with a history -----------------------------------------------------------------


def fill(stack: PrivateStack) -> None:
    """Creates calls, deliveries and a paused agent beside the runs of the schedules."""
    shutil.copytree(ROOT / "examples", stack.project, dirs_exist_ok=True)
    with (stack.project / "config.toml").open("a") as config:
        config.write(SOURCE)
    (stack.project / "secret").write_text(SECRET)
    stack.write_agent("triage", LISTENER.format(filters="events: [issues]"))
    stack.write_agent("reviewer", LISTENER.format(filters="labels: [bug]"))
    stack.up(READY_SECONDS)
    until = time.monotonic() + LIVE_SECONDS
    stack.wait_for_rows("SELECT id FROM drover_webhook_source", seconds=60)
    for number in (1, 2, 3):
        _post_delivery(stack, number)
    for agent in ("planner", "long-haul"):
        _manage(stack, "run", agent)
    _manage(stack, "schedule", "create", "reviewer", "every weekday at 09:00", "--name", "mornings")
    _manage(stack, "pause", "snoozer", "--note", "until the release is out")
    called = "SELECT id FROM drover_run WHERE parent_run_id IS NOT NULL AND finished_at IS NOT NULL"
    stack.wait_for_rows(called, seconds=READY_SECONDS)
    stack.wait_for_rows(RULE_WITH_OUTPUT, seconds=READY_SECONDS)
    wait_for(lambda: time.monotonic() > until, LIVE_SECONDS + 5, "the time did not pass")
    # Runs while the first pictures are taken.
    _manage(stack, "run", "long-haul")


def _post_delivery(stack: PrivateStack, number: int) -> None:
    """Posts a signed delivery; the gateway reads a new source within two seconds."""
    # A repeated body would be a duplicate.
    body = json.dumps({**ISSUE, "issue": {**ISSUE["issue"], "number": number}}).encode()
    headers = {
        "x-github-event": "issues",
        "x-github-delivery": f"picture-{number}",
        "x-hub-signature-256": "sha256=" + hmac.new(SECRET.encode(), body, "sha256").hexdigest(),
    }

    def sent() -> bool:
        url = f"{stack.url}/webhooks/github"
        return httpx.post(url, content=body, headers=headers).is_success

    wait_for(sent, 30, "the gateway accepts no deliveries")


def _manage(stack: PrivateStack, *arguments: str) -> None:
    done = stack.manage(*arguments)
    assert done.returncode == 0, done.stderr


# --- pictures -------------------------------------------------------------------------------


def pictures(stack: PrivateStack) -> list[Picture]:
    def row(table: str, sql: str) -> str:
        (found, *_) = stack.rows(sql)
        return f"{table}/{found['id']}/change/"

    long = row("runs", _run_of("long-haul"))
    agent = row("agents", "SELECT id FROM drover_agent WHERE name = 'minute-report'")
    (delivery, *_) = stack.rows("SELECT id FROM drover_delivery ORDER BY id")
    payload_test = f"deliveries/test/?delivery={delivery['id']}"
    return [
        Picture("overview", ""),
        Picture("overview-dark", "", "dark"),
        Picture("overview-phone", "", phone=True),
        Picture("agent", agent),
        Picture("run", long),
        Picture("run-dark", long, "dark"),
        Picture("run-phone", long, phone=True),
        Picture("calls", row("runs", _run_of("planner")), heading="Trigger and calls"),
        Picture(
            "schedule", row("schedules", "SELECT id FROM drover_schedule WHERE name='mornings'")
        ),
        Picture("schedule-form", "schedules/add/", act=_type_a_schedule),
        Picture("calendar", "schedules/calendar/"),
        Picture("deliveries", "deliveries/"),
        Picture("delivery", f"deliveries/{delivery['id']}/change/"),
        Picture("delivery-test", payload_test, act=_test_the_payload),
        Picture("runs", "runs/"),
        Picture("queue", "queue/"),
        Picture("firings", "firings/"),
        Picture("doctor", "doctor/", act=lambda page: _hide_directory(page, stack)),
        Picture("workers", "workers/"),
        Picture("rules", "rules/"),
        Picture("rule", row("rules", RULE_WITH_OUTPUT)),
    ]


def _type_a_schedule(page: Page) -> None:
    page.fill("#id_timezone", "Europe/Berlin")
    page.fill("#id_text", "every weekday at 09:30")
    expect(page.locator("#dv-form-preview tbody tr").first).to_be_visible()


def _test_the_payload(page: Page) -> None:
    page.get_by_role("button", name="Test", exact=True).click()
    expect(page.locator(".dv-decisions")).to_be_visible()


def _hide_directory(page: Page, stack: PrivateStack) -> None:
    """Replaces the temporary directory in the findings."""
    replace = """place => document.querySelectorAll("#dv-findings *").forEach(one => {
        if (one.childElementCount) return;
        one.textContent = one.textContent.replace(place, "~/fleet");
    })"""
    page.evaluate(replace, str(stack.data.parent))


def _run_of(agent: str) -> str:
    return (
        "SELECT r.id FROM drover_run r JOIN drover_agent a ON a.id = r.agent_id "
        f"WHERE a.name = '{agent}' ORDER BY r.id"
    )


def take(browser: Browser, stack: PrivateStack, picture: Picture, out: Path) -> bool:
    """False if the page does not exist."""
    size = (PHONE_WIDTH, PHONE_HEIGHT) if picture.phone else (WIDTH, HEIGHT)
    page = browser.new_page(
        viewport={"width": size[0], "height": size[1]}, color_scheme=picture.look
    )
    try:
        log_in(page, stack.url, "admin", stack.env["DROVER_ADMIN_PASSWORD"])
        response = page.goto(f"{stack.url}/admin/{picture.path}")
        if response is None or response.status == 404:
            return False
        _settle(page)
        if picture.act:
            picture.act(page)
            _settle(page)
        if picture.heading:
            at_top = "heading => heading.scrollIntoView()"
            page.get_by_role("heading", name=picture.heading).evaluate(at_top)
        elif not picture.phone:
            _fit_height(page)
        page.screenshot(path=out, animations="disabled")
        return True
    finally:
        page.close()


def _fit_height(page: Page) -> None:
    """Sets the height of the page up to TALLEST: a full-page screenshot would cut the sidebar."""
    height = page.evaluate("document.documentElement.scrollHeight")
    page.set_viewport_size({"width": WIDTH, "height": max(HEIGHT, min(height, TALLEST))})


def _settle(page: Page) -> None:
    """Waits until the page has no open request except the event stream."""
    page.wait_for_load_state("load")
    page.evaluate("document.fonts.ready")
    page.wait_for_function("!document.querySelector('.htmx-request, [aria-busy=true]')")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path, nargs="?", default=ROOT / "docs" / "screenshots")
    directory: Path = parser.parse_args().directory
    executable = chromium_path() or sys.exit("chromium is missing: apt install chromium")
    directory.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix="drover-pictures-") as place,
        PrivateStack(Path(place) / "stack", DROVER_FLOWER="yes") as stack,
    ):
        print(f"Drover runs in {place} for {LIVE_SECONDS:g} s", flush=True)
        fill(stack)
        with chromium(executable) as browser:
            for picture in pictures(stack):
                out = directory / f"{picture.name}.png"
                taken = take(browser, stack, picture, out)
                result = f"{out.stat().st_size // 1024} KB" if taken else "page not found"
                print(f"{picture.name}: {result}", flush=True)


if __name__ == "__main__":
    main()
