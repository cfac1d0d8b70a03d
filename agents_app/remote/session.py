"""What a remote command needs: the connection, the screen, and objects looked up by name."""

import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from agents_app.console import LastRun, Screen, ShownSchedule
from agents_app.errors import NotFound, Refused
from agents_app.names import did_you_mean
from agents_app.remote.connection import Connection, segment
from agents_app.remote.values import Row, read_run, read_schedule
from agents_app.text import harmless

# Longer numbers exceed the type of the keys.
LONGEST_NUMBER = 18
UNFINISHED = ("pending", "running")


@dataclass(frozen=True, slots=True)
class Session:
    api: Connection
    screen: Screen

    @property
    def now(self) -> datetime:
        return datetime.now(UTC)

    def remark(self, text: str) -> None:
        """Writes to stderr, so that a pipe receives only the result."""
        sys.stderr.write(f"{harmless(text)}\n")

    def result(self, text: str, value: object, *, json: bool) -> None:
        if json:
            self.screen.json(value)
        else:
            self.screen.say(text)

    # --- agents -----------------------------------------------------------------------------

    def agent(self, name: str) -> Row:
        try:
            found: Row = self.api.get(f"/agents/{segment(name)}")
        except NotFound:
            raise NotFound(self._no_agent(name)) from None
        return found

    def agent_names(self) -> list[str]:
        return [agent["name"] for agent in self.api.pages("/agents", "agents")]

    def _no_agent(self, name: str) -> str:
        guess = did_you_mean(name, self.agent_names())
        return f"there is no agent {name!r}{guess} (drover stat lists the agents)"

    # --- runs -------------------------------------------------------------------------------

    def run(self, text: str) -> Row:
        if not is_number(text):
            raise Refused(
                f"{text!r} is not a run number (drover stat shows the last run of each agent)"
            )
        try:
            found: Row = self.api.get(f"/runs/{int(text)}")
        except NotFound:
            gone = f"there is no run {int(text)}; old runs are removed by retention"
            raise NotFound(gone) from None
        return found

    def run_or_agent(self, text: str) -> tuple[Row | None, Row | None]:
        """A number is a run, a name is an agent; `run:7` and `agent:7` resolve an ambiguity."""
        kind, _, rest = text.partition(":")
        if kind == "run" and rest:
            return self.run(rest), None
        if kind == "agent" and rest:
            return None, self.agent(rest)
        if not is_number(text):
            return None, self.agent(text)
        if self._has_agent(text):
            raise Refused(f"{text} is a run and an agent: use run:{text} or agent:{text}")
        return self.run(text), None

    def unfinished_runs(self, **query: Any) -> list[Row]:
        found = [r for s in UNFINISHED for r in self.api.pages("/runs", "runs", state=s, **query)]
        return sorted(found, key=lambda run: int(run["id"]))

    def newest_run(self, **query: Any) -> Row | None:
        return next(self.api.pages("/runs", "runs", most=1, **query), None)

    def last_run(self, run_id: int) -> LastRun:
        return read_run(self.api.get(f"/runs/{run_id}"))

    def _has_agent(self, name: str) -> bool:
        try:
            self.api.get(f"/agents/{segment(name)}")
        except NotFound:
            return False
        return True

    # --- schedules --------------------------------------------------------------------------

    def schedule(self, text: str) -> ShownSchedule:
        """By name, by AGENT/NAME if the name is not unique, or by number."""
        found = self._named_schedules(text)
        if not found:
            raise NotFound(self._no_schedule(text))
        return found[0]

    def schedules(self, text: str) -> list[ShownSchedule]:
        """Like `schedule`; the name of an agent stands for all its schedules.

        For an agent with a single active or paused schedule, only that one."""
        if found := self._named_schedules(text):
            return found
        if not self._has_agent(text):
            raise NotFound(self._no_schedule(text))
        own = sorted(self.list_schedules(agent=text), key=lambda one: one.name)
        if not own:
            raise NotFound(
                f"the agent {text} has no schedules: set `schedule` in its SKILL.md, "
                f"or use drover schedule create {text}"
            )
        in_use = [one for one in own if one.state in {"active", "paused"}]
        return in_use if len(in_use) == 1 else own

    def list_schedules(self, **query: Any) -> list[ShownSchedule]:
        # By creation: a schedule that changes meanwhile does not move between the pages.
        rows = self.api.pages("/schedules", "schedules", order="created", **query)
        return [read_schedule(row) for row in rows]

    def read_schedule(self, key: int) -> ShownSchedule:
        return read_schedule(self.api.get(f"/schedules/{key}"))

    def _named_schedules(self, text: str) -> list[ShownSchedule]:
        """One schedule or none; refuses a text that more than one schedule has as its name."""
        number = text.removeprefix("#")
        found = sorted(self.list_schedules(name=text, all=True), key=lambda one: one.agent)
        if is_number(number) and int(number) not in [one.id for one in found]:
            found += self._numbered(int(number))
        agent, slash, name = text.partition("/")
        if not found and slash and self._has_agent(agent):
            found = self.list_schedules(agent=agent, name=name)
        if len(found) > 1:
            which = ", ".join(f"{one} (#{one.id}, {one.state})" for one in found)
            raise Refused(f"{text!r} is ambiguous: use one of {which}")
        return found

    def _numbered(self, key: int) -> list[ShownSchedule]:
        try:
            return [self.read_schedule(key)]
        except NotFound:
            return []

    def _no_schedule(self, text: str) -> str:
        schedules = self.list_schedules()
        if own := sorted(str(one) for one in schedules if one.agent == text):
            return f"{text!r} is an agent; its schedules are {', '.join(own)}"
        known = [one.name for one in schedules] + [str(one) for one in schedules]
        guess = did_you_mean(text, known)
        return f"there is no schedule {text!r}{guess} (drover schedule list shows the schedules)"


def is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER
