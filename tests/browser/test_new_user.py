"""The dashboard as a new user tries it: names, ways to the log, waiting work, phones."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import NARROW, WIDE, OpenPage
from tests.parts.stack_part import PrivateStack

pytestmark = pytest.mark.slow

SUBSIDIARIES = "nightly-reconciliation-of-the-accounts-of-all-subsidiaries"
SKILL = """---
description: {description}
command: [sh, -c, "{command}"]
{more}
---
Do the work.
"""
WEBHOOKS = "webhooks: [{source: new-user-github, events: [issues]}]"
CONFIG = """[webhooks.new-user-github]
type = "github"
secrets = ["file:secret"]
"""
# What the user cannot read: text that is cut, and tables that neither fit nor scroll.
UNREADABLE = """() => {
    const all = selector => [...document.querySelectorAll(selector)];
    const name = element => `${element.tagName} ${element.className}: ${element.innerText}`;
    const flows = (element, axis) => getComputedStyle(element)[`overflow${axis}`];
    const cut = all("h1 > *, #result_list :is(td, th), .dv-table :is(td, th)").filter(cell =>
        flows(cell, "Y") !== "visible" && cell.scrollHeight > cell.clientHeight + 1);
    const panels = all(".dv-panel, .dv-day, .dv-day a").filter(panel =>
        panel.scrollWidth > panel.clientWidth + 1 &&
        !["auto", "scroll"].includes(flows(panel, "X")));
    return [...cut, ...panels].map(name);
}"""
# Pages with data; lists without rows say what they are for.
LISTS = (
    *("agents", "schedules", "queue", "runs", "credentials", "calls", "messages", "locks"),
    *("lock-waits", "deliveries", "webhook-sources", "work-sources", "claims", "notifications"),
    *("firings", "events", "usage", "heartbeats", "workers", "scheduler", "periodic-tasks"),
    *("intervals", "tenants", "users", "groups", "api-tokens", "failed-logins"),
)
OTHERS = ("", "schedules/calendar/", "rules/", "doctor/", "machines/", "deliveries/test/")
FORMS = tuple(
    f"{name}/add/" for name in ("schedules", "webhook-sources", "credentials", "api-tokens")
)


@pytest.fixture(scope="module")
def fleet() -> dict[str, str]:
    def skill(command: str, more: str = "") -> str:
        return SKILL.format(description="Reads " * 20, command=command, more=more)

    return {
        SUBSIDIARIES: skill("echo first line; sleep 2; echo last line", "schedule: 0 3 1 1 *"),
        "one-at-a-time": skill("sleep 600"),
        "new-user-listener": skill("true", WEBHOOKS),
        "customer-onboarding-email-sequence-writer": skill("exit 3", "schedule: 5s"),
    }


@pytest.fixture(scope="module", autouse=True)
def project(stack: PrivateStack, agents: Path) -> Iterator[None]:
    """A webhook source and rules beside the agents."""
    (stack.project / "secret").write_text("a secret of the tests of a new user")
    config, rules = stack.project / "config.toml", stack.project / "scheduler.rules"
    before = config.read_text() if config.exists() else ""
    config.write_text(before + CONFIG)
    rules.write_text(
        f"[pause-{SUBSIDIARIES}] every 2d if queue({SUBSIDIARIES}) > 90 => pause all\n"
    )
    stack.wait_for_rows("SELECT id FROM drover_webhook_source WHERE name = 'new-user-github'")
    yield
    config.write_text(before)
    rules.unlink()
    # The other files of these tests use the same Drover.
    stack.manage("credential", "remove", "github_token")
    for agent in (SUBSIDIARIES, "one-at-a-time"):
        stack.manage("queue", "clear", agent)
    stack.manage("stop", "one-at-a-time")
    stack.wait_for_rows("SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM drover_run WHERE slot >= 0)")


def page_of(stack: PrivateStack, agent: str) -> str:
    (row,) = stack.rows("SELECT id FROM drover_agent WHERE name = ?", agent)
    return f"/admin/agents/{row['id']}/change/"


def run_of(page: Page) -> str:
    page.wait_for_url(re.compile(r"/admin/runs/\d+/change/$"))
    return page.url


# --- from a button to the log ---------------------------------------------------------------


def test_run_now_and_rerun_lead_to_the_live_log_of_the_new_run(page: Page, stack: PrivateStack):
    page.goto(page_of(stack, SUBSIDIARIES))
    page.get_by_role("button", name="Run now").click()
    first = run_of(page)
    log = page.locator("#dv-log")
    expect(log).to_contain_text("first line")
    # The log goes on without a reload.
    expect(log).to_contain_text("last line", timeout=20_000)
    expect(page.locator(".dv-facts").first).to_contain_text("succeeded", timeout=20_000)
    page.get_by_role("button", name="Rerun").click()
    page.wait_for_url(lambda url: url != first and "/runs/" in url)
    assert run_of(page) != first
    expect(page.locator("#dv-log")).to_contain_text("last line", timeout=20_000)


def test_run_now_on_the_overview_and_in_the_list_lead_to_the_log(page: Page, stack: PrivateStack):
    page.goto("/admin/")
    line = page.locator(".dv-agents tr", has_text=SUBSIDIARIES)
    line.get_by_role("button", name="Run now").click()
    first = run_of(page)
    expect(page.locator("#dv-log")).to_contain_text("last line", timeout=20_000)
    page.goto(f"/admin/agents/?q={SUBSIDIARIES}")
    page.locator("#result_list input.action-select").first.check()
    page.locator("select[name=action]").select_option(label="Run now")
    page.get_by_role("button", name="Run", exact=True).click()
    page.wait_for_url(lambda url: url != first and "/runs/" in url)
    expect(page.locator("#dv-log")).to_contain_text("last line", timeout=20_000)


# --- what waits, and why --------------------------------------------------------------------


def test_the_queue_opens_on_what_waits_and_says_why(page: Page, stack: PrivateStack):
    assert stack.manage("pause", SUBSIDIARIES, "--note", "until the audit ends").returncode == 0
    for agent in ("one-at-a-time", "one-at-a-time", SUBSIDIARIES):
        assert stack.manage("run", agent).returncode == 0
    page.goto("/admin/")
    page.locator("#nav-sidebar a", has_text="Queue").click()
    rows = page.locator("#result_list tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.filter(has_text="one-at-a-time")).to_contain_text("waiting for a slot")
    paused = "the agent is paused: until the audit ends"
    expect(rows.filter(has_text=SUBSIDIARIES)).to_contain_text(paused)
    for path in ("/admin/", "/admin/agents/"):
        page.goto(path)
        line = page.locator(":is(.dv-agents, #result_list) tr", has_text=SUBSIDIARIES)
        expect(line.locator(".dv-note")).to_have_text(paused)
    page.goto(page_of(stack, SUBSIDIARIES))
    expect(page.locator("#dv-agent-now .dv-facts")).to_contain_text(paused)
    assert stack.manage("resume", SUBSIDIARIES).returncode == 0


# --- the menu and the names -----------------------------------------------------------------


def test_the_sidebar_has_one_entry_for_celery_and_one_for_api_tokens(page: Page):
    page.goto("/admin/")
    entries = [text.split("\n")[-1] for text in page.locator("#nav-sidebar a").all_inner_texts()]
    assert entries.count("Celery") == 1
    assert not {"Periodic tasks", "Crontabs", "Intervals", "Solar events", "Clocked"} & {*entries}
    page.locator("#nav-sidebar a", has_text="Celery").click()
    page.get_by_role("link", name="Intervals").click()
    expect(page).to_have_title("Intervals | Drover")
    page.locator("#nav-sidebar a", has_text="API tokens").click()
    expect(page.locator("h1")).to_contain_text("API tokens")


def test_a_page_is_named_after_its_content(page: Page, stack: PrivateStack):
    done = stack.manage(
        "credential", "set", "github_token", "--file", str(stack.project / "secret")
    )
    assert done.returncode == 0, done.stderr
    stack.wait_for_rows("SELECT id FROM drover_firing WHERE outcome <> ''")
    for path, named in {
        "agents": "customer-onboarding-email-sequence-writer",
        "credentials": "github_token",
        "firings": r"[a-z-]+/[a-z]+ at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d \w+",
        "runs": r"Run \d+",
    }.items():
        page.goto(f"/admin/{path}/")
        page.locator("#result_list tbody :is(th, td) > a").first.click()
        expect(page).to_have_title(re.compile(rf"^{named} \| {path.capitalize()} \| Drover$"))
        expect(page.locator("h1 > :last-child")).to_have_text(re.compile(rf"^\s*{named}\s*$"))
    expect(page.locator("h1 > a").first).to_have_attribute("href", "/admin/")


def test_a_schedule_is_renamed_on_its_page(page: Page, stack: PrivateStack):
    made = stack.manage(
        "schedule", "create", "one-at-a-time", "every monday at 09:00", "--name", "mondays"
    )
    assert made.returncode == 0, made.stderr
    page.goto("/admin/schedules/?q=mondays")
    page.get_by_role("link", name="mondays").click()
    page.fill("#id_name", "first day of the week")
    page.get_by_role("button", name="Save and continue editing").click()
    expect(page.locator("h1")).to_contain_text("one-at-a-time/first day of the week")
    renamed = "SELECT text FROM drover_schedule WHERE name = 'first day of the week'"
    assert stack.rows(renamed) == [{"text": "every monday at 09:00"}]


def test_the_url_of_a_webhook_is_copied_on_the_pages_of_agent_and_source(
    page: Page, stack: PrivateStack
):
    url = f"{stack.url}/webhooks/github/new-user-github"
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=stack.url)
    page.goto(page_of(stack, "new-user-listener"))
    for _ in ("agent", "source"):
        page.evaluate("navigator.clipboard.writeText('')")
        line = page.locator(".dv-copy", has_text=url)
        line.get_by_role("button", name="Copy").click()
        expect(line.get_by_role("button", name="Copied")).to_be_visible()
        assert page.evaluate("navigator.clipboard.readText()") == url
        if "/agents/" in page.url:
            page.get_by_role("link", name="new-user-github").click()
            page.wait_for_url("**/admin/webhook-sources/*/change/")


# --- every page, wide and narrow ------------------------------------------------------------


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_every_page_fits_its_window_and_cuts_no_text(
    open_page: OpenPage, stack: PrivateStack, width: int
):
    """Each list with the page of its first row, each form, and each other page of the menu."""
    page = open_page(width=width)
    stack.wait_for_rows("SELECT id FROM drover_run WHERE state = 'failed'")
    paths = [*OTHERS, *FORMS, *(f"{name}/" for name in LISTS)]
    wrong = {}
    while paths:
        path = paths.pop()
        page.goto(f"/admin/{path}")
        expect(page.get_by_text("Loading …")).to_have_count(0)
        too_wide = page.evaluate("document.documentElement.scrollWidth > innerWidth")
        if found := page.evaluate(UNREADABLE) + ["the page"] * too_wide:
            wrong[path] = found
        row = page.locator("#result_list tbody :is(th, td) > a[href*='/change/']").first
        if path.rstrip("/") in LISTS and row.count():
            address = row.get_attribute("href") or ""
            # Entries of the journal of a run that ended may be removed meanwhile.
            paths.append(address.removeprefix("/admin/"))
    assert wrong == {}
