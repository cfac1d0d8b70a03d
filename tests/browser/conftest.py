"""A real Chromium on a real Drover, with several users, colour schemes and screen widths.

All files share one Drover. A test file overrides `fleet` to have other agents, with names that no
other file uses. `open_page` opens further pages; an error on any page fails the test.
"""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, StorageState, expect

from tests.browser.chromium import chromium, chromium_path, log_in
from tests.browser.watch import Watch
from tests.parts.missing import missing
from tests.parts.stack_part import PrivateStack
from tests.parts.waiting import BUSY_FACTOR

GREETER = """---
description: Says hello, a little at a time
command: [sh, -c, "echo hello; echo careful >&2; for n in 1 2 3; do sleep 2; echo step $n; done"]
---
Say hello.
"""
WIDE, NARROW = 1280, 390
HEIGHT = 900
MAKE_VIEWER = """
from django.contrib.auth.models import Permission, User
user = User.objects.create_user("viewer", password={password!r}, is_staff=True)
user.user_permissions.set(Permission.objects.filter(codename__startswith="view_"))
"""

OpenPage = Callable[..., Page]

expect.set_options(timeout=5_000 * BUSY_FACTOR)


# Not of scope session: while it is open, no other test of this process can use asyncio.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with chromium(chromium_path() or missing("chromium", "apt install chromium")) as found:
        yield found


@pytest.fixture(scope="module")
def fleet() -> dict[str, str]:
    """The SKILL.md of each agent of the test file."""
    return {"greeter": GREETER}


@pytest.fixture(scope="package")
def stack(
    tmp_path_factory: pytest.TempPathFactory, migrated_database: Callable[[Path], str]
) -> Iterator[PrivateStack]:
    """A Drover without agents, all of its processes running."""
    directory = tmp_path_factory.mktemp("browser")
    with PrivateStack(directory, migrated_database(directory / "data")) as stack:
        stack.up()
        yield stack


@pytest.fixture(scope="module", autouse=True)
def agents(stack: PrivateStack, fleet: dict[str, str]) -> Iterator[Path]:
    """The directory of the agents; it is emptied after the file, which pauses their schedules."""
    for name, skill in fleet.items():
        stack.write_agent(name, skill)
    for name in fleet:
        stack.wait_for_rows("SELECT id FROM drover_agent WHERE name = ?", name)
    yield stack.project / "agents"
    for name in fleet:
        shutil.rmtree(stack.project / "agents" / name)


@pytest.fixture(scope="package")
def passwords(stack: PrivateStack) -> dict[str, str]:
    """The passwords of the users: `admin` has all rights, `viewer` may view all pages."""
    password = stack.env["DROVER_ADMIN_PASSWORD"]
    made = stack.manage("shell", "-c", MAKE_VIEWER.format(password=password))
    assert made.returncode == 0, made.stderr
    return {"admin": password, "viewer": password}


@pytest.fixture(scope="package")
def sessions(
    browser: Browser, stack: PrivateStack, passwords: dict[str, str]
) -> dict[str, StorageState]:
    """The cookies of each user after the login: a login takes as long as some tests."""
    made = {}
    for user, password in passwords.items():
        page = browser.new_page()
        log_in(page, stack.url, user, password)
        made[user] = page.context.storage_state()
        page.close()
    return made


@pytest.fixture
def watched(stack: PrivateStack) -> Iterator[Watch]:
    """Asserts that pages had no errors and sent no requests to other hosts."""
    watch = Watch(urlsplit(stack.url).netloc)
    yield watch
    assert watch.foreign == []
    assert watch.errors == []


@pytest.fixture
def open_page(
    browser: Browser, stack: PrivateStack, sessions: dict[str, StorageState], watched: Watch
) -> Iterator[OpenPage]:
    """Opens another window with a logged-in user; the window is empty."""
    made: list[Page] = []

    def open_one(
        user: str = "admin",
        width: int = WIDE,
        look: Literal["light", "dark"] = "light",
        timezone: str | None = None,
    ) -> Page:
        page = browser.new_page(
            base_url=stack.url,
            storage_state=sessions[user],
            viewport={"width": width, "height": HEIGHT},
            color_scheme=look,
            timezone_id=timezone,
        )
        made.append(watched.attach(page))
        return page

    yield open_one
    for page in made:
        page.close()


@pytest.fixture
def page(open_page: OpenPage) -> Page:
    return open_page()


@pytest.fixture
def viewer(open_page: OpenPage) -> Page:
    """A page of a staff user who may view all pages and change nothing."""
    return open_page("viewer")


@pytest.fixture
def dark_phone(open_page: OpenPage) -> Page:
    """A narrow page in dark colours; the other pages are wide and light."""
    return open_page(look="dark", width=NARROW)


@pytest.fixture
def phone(open_page: OpenPage) -> Page:
    return open_page(width=NARROW)
