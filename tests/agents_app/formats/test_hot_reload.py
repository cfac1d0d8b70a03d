"""Changed files of other systems take effect while the watch of the project runs."""

import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agents_app.models import Agent, Schedule, Tenant
from agents_app.project import sync_project
from agents_app.project.watch import watch_project
from tests.agents_app.fleet import NOON
from tests.agents_app.formats.written import PROJECTS, copied, write
from tests.parts.waiting import wait_for

pytestmark = pytest.mark.django_db(transaction=True)
# With the time in which the watch waits for more changes.
SECONDS = 2.0


class WatchedProject:
    """A project that beat's function watches on a thread; `edit` waits until it was read again."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.reads = 0
        self.stop = threading.Event()
        self.thread = threading.Thread(
            target=watch_project, args=(root, self._changed, self.stop), daemon=True
        )

    def _changed(self) -> tuple[Path, ...]:
        files = sync_project(self.root, NOON).files
        self.reads += 1
        return files

    def __enter__(self) -> "WatchedProject":
        self.thread.start()
        wait_for(lambda: self.reads, 5)
        # The watch itself begins a moment after the first call: it is there when it sees a file.
        self.settle()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        self.thread.join(5)
        assert not self.thread.is_alive()

    def settle(self) -> None:
        before, number = self.reads, 0
        while self.reads == before and number < 100:
            (self.root / "notes.txt").write_text(str(number))
            self.stop.wait(0.1)
            number += 1
        assert self.reads > before

    def edit(self, name: str, change: Callable[[str], str], true: Callable[[], object]) -> None:
        path = self.root / name
        path.write_text(change(path.read_text()))
        self.becomes(true)

    @staticmethod
    def becomes(true: Callable[[], object]) -> None:
        wait_for(lambda: bool(true()), SECONDS, lambda: str(list(problems())))


def problems() -> list[str]:
    return list(Tenant.objects.get().definition_errors)


def agent(name: str) -> Agent:
    return Agent.objects.get(name=name)


def live() -> set[str]:
    return set(Agent.objects.filter(removed_at__isnull=True).values_list("name", flat=True))


def broken() -> set[str]:
    return {name for name in live() if agent(name).definition_error}


@pytest.fixture
def company(tmp_path: Path) -> Iterator[WatchedProject]:
    with WatchedProject(copied("company", tmp_path)) as watched:
        yield watched


@pytest.fixture
def newsroom(tmp_path: Path) -> Iterator[WatchedProject]:
    with WatchedProject(copied("newsroom", tmp_path)) as watched:
        yield watched


def test_edits_of_nested_fleets_and_their_agents_take_effect(company: WatchedProject):
    web = "product/web/herdctl.yaml"
    # The defaults of a fleet in the middle reach the agents two levels below.
    company.edit(
        "product/herdctl.yaml",
        lambda text: text.replace("max_turns: 25", "max_turns: 26"),
        lambda: "--max-turns=26" in agent("product-web-seo").command,
    )
    company.edit(
        "product/web/seo.yaml",
        lambda text: text.replace("name: seo", "name: seo\ninstances: {max_concurrent: 7}"),
        lambda: agent("product-web-seo").scale == 7,
    )
    # An agent that its fleet no longer names disappears; a new one is there.
    write(company.root, {"product/web/feeds.yaml": "name: feeds\n"})
    company.edit(
        web,
        lambda text: text.replace("links.yaml", "feeds.yaml"),
        lambda: {"product-web-feeds", "product-web-links"} & live() == {"product-web-feeds"},
    )
    assert len(live()) == 30
    # A fleet that is no longer named disappears with all its agents.
    company.edit(
        "herdctl.yml",
        lambda text: text.replace("  - path: support/fleet.yaml\n", ""),
        lambda: len(live()) == 25,
    )
    assert not any(name.startswith("support-") for name in live())
    assert problems() == []


def test_a_broken_fleet_keeps_its_agents_and_says_why_until_it_is_repaired(
    company: WatchedProject,
):
    path = company.root / "platform" / "data" / "herdctl.yaml"
    good, before = path.read_text(), live()
    path.write_text("agents:\n  - path: quality.yaml\n  - pth: lineage.yaml\n")
    company.becomes(problems)
    assert problems() == ["platform/data/herdctl.yaml:3: agents.2.path: is missing"]
    assert live() == before
    assert Schedule.objects.filter(agent__name="infra-data-lineage", state="active").exists()
    # The others are still read.
    company.edit(
        "agents/travel.yaml",
        lambda text: text.replace("name: travel", "name: travel\nmodel: m"),
        lambda: "m" in agent("travel").command,
    )
    path.unlink()
    company.becomes(lambda: "there is no file platform/data/herdctl.yaml" in problems()[0])
    assert live() == before
    path.write_text(good)
    company.becomes(lambda: not problems())
    assert live() == before


def test_a_deleted_agent_file_is_reported_and_its_agent_stays_until_its_reference_goes(
    newsroom: WatchedProject,
):
    (newsroom.root / "agents" / "archivist.yaml").unlink()
    newsroom.becomes(problems)
    (problem,) = problems()
    assert problem.startswith("herdctl.yaml:25: there is no file agents/archivist.yaml")
    assert "archive-keeper" in live()
    newsroom.edit(
        "herdctl.yaml",
        lambda text: text.replace(
            "  - path: ./agents/archivist.yaml\n    overrides:\n      allowed_tools: *reading\n", ""
        ),
        lambda: live() == {"editor", "reporter"},
    )
    assert problems() == []


def test_variables_of_the_env_file_take_effect_and_a_missing_one_is_an_error(
    newsroom: WatchedProject,
):
    newsroom.edit(
        ".env",
        lambda text: text.replace("Leipzig", "Dresden"),
        lambda: "about Dresden" in agent("reporter").instructions,
    )
    env = newsroom.root / ".env"
    env.write_text("NEWS_CITY=Jena\n")
    # `model` of the defaults has no value now, except for the agent that has one of its own.
    newsroom.becomes(lambda: broken() == {"reporter", "archive-keeper"})
    assert "herdctl.yaml:7: model: the variable NEWS_MODEL is not set" in problems()[0]
    assert "about Dresden" in agent("reporter").instructions
    env.write_text("NEWS_CITY=Jena\nNEWS_MODEL=m\n")
    newsroom.becomes(lambda: "about Jena" in agent("reporter").instructions)
    assert problems() == []


def test_a_project_may_become_one_of_another_system(newsroom: WatchedProject):
    """Agents of the old files disappear, also those of a directory that is removed whole."""
    (newsroom.root / "herdctl.yaml").unlink()
    shutil.rmtree(newsroom.root / "agents")
    newsroom.becomes(lambda: live() == set())
    for path in (PROJECTS / "helpdesk").iterdir():
        target = newsroom.root / path.name
        shutil.copytree(path, target) if path.is_dir() else shutil.copy(path, target)
    newsroom.becomes(lambda: live() == {"coder", "oracle", "remote", "triage"})
    newsroom.edit(
        "config.toml",
        lambda text: text.replace("gpt-5-codex", "gpt-6-codex"),
        lambda: "gpt-6-codex" in agent("coder").command,
    )
    newsroom.edit(
        ".env.toml",
        lambda text: f"{text}\n[models.gpt]\nmodel = 'gpt-7-codex'\n",
        lambda: "gpt-7-codex" in agent("coder").command,
    )
