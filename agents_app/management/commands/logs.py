"""Shows what runs printed, also while they run."""

from collections.abc import Callable, Sequence
from typing import Any

from django.core.management.base import CommandParser
from django.db.models import Max

from agents_app.cli import (
    DroverCommand,
    RunFollower,
    RunLogLine,
    find_agent,
    find_run_or_agent,
    find_tenant,
    merged_lines,
)
from agents_app.conf import PROGRAM
from agents_app.console import (
    ALL_OR_NAMES,
    LabelledLog,
    add_logs,
    ending_of,
    first_run_text,
    line_as_json,
    line_text,
    log_as_json,
    no_run_text,
)
from agents_app.errors import NotFound, Refused
from agents_app.models import Agent, Run, Tenant
from agents_app.output import lines_until_end, stored_lines, text_until_end, whole_text
from agents_app.reports import last_run


class Command(DroverCommand):
    help = (
        "Show the output of a run, of an agent's newest run, or of the newest run of all; "
        "of several agents it comes together, each line under its agent's name."
    )
    examples = (
        ("logs", "The newest run of all."),
        ("logs reporter -f", "Its newest run, then each run to come, until Ctrl-C."),
        ("logs 42 -f", "Run 42, until the run ends."),
        ("logs reporter greeter -f", "Both, also the runs to come, until Ctrl-C."),
        ("logs --all -f --times", "All agents, with the time of each line."),
        ("logs 42 --json", "Run 42, for a program."),
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        add_logs(parser)

    def handle(self, *, tenant: str, targets: list[str], json: bool, **options: Any) -> None:
        owner = find_tenant(tenant)
        if options["all"] and targets:
            raise Refused(ALL_OR_NAMES)
        if not options["all"] and len(targets) < 2:
            target = targets[0] if targets else ""
            found = find_run_or_agent(owner, target) if target else None
            if options["follow"] and isinstance(found, Agent):
                self._follow_one(found, json=json, times=options["times"])
            else:
                self._one(newest_run(owner, found), json=json, **options)
            return
        agents = find_agents(owner, targets)
        if options["follow"]:
            self._follow(agents, json=json, times=options["times"])
        else:
            self._together(newest_of(agents), json=json, times=options["times"])

    # --- one run ----------------------------------------------------------------------------

    def _one(self, run: Run, *, follow: bool, times: bool, json: bool, **_: Any) -> None:
        if json and follow:
            for line in lines_until_end(run.pk):
                self.screen.json_line(line_as_json(run.pk, line))
        elif json:
            self.screen.json(described(run))
        else:
            self._print(run, follow=follow, times=times)
            run.refresh_from_db()
            self.remark(ending_of(last_run(run)))

    def _print(self, run: Run, *, follow: bool, times: bool) -> None:
        if times:
            ended = run.slot is None
            lines = lines_until_end(run.pk) if follow else stored_lines(run.pk, ended=ended)
            for line in lines:
                self.screen.text(line_text(line, times=True))
        else:
            for text in text_until_end(run.pk) if follow else [whole_text(run.pk)]:
                self.screen.text(text)

    # --- one agent --------------------------------------------------------------------------

    def _follow_one(self, agent: Agent, *, json: bool, times: bool) -> None:
        """The newest run, then each run to come, until Ctrl-C; lines without the agent's name."""
        newest = agent.runs.order_by("-pk").first()
        if newest is None:
            self.remark(first_run_text(agent.name))
        elif newest.slot is None and not json:
            self._one(newest, follow=False, json=False, times=times)
        # A run that was unfinished is followed even if it has ended meanwhile.
        after = 0 if newest is None else newest.pk - (newest.slot is not None)
        follower = RunFollower(agent.runs.all(), after)

        def show(each: RunLogLine) -> None:
            self.screen.text(line_text(each.line, times=times))

        self._print_followed(follower, show, json=json)

    # --- several runs -----------------------------------------------------------------------

    def _together(self, runs: Sequence[Run], *, json: bool, times: bool) -> None:
        if json:
            self.screen.json({"runs": [described(run) for run in runs]})
            return
        names = {run.pk: run.agent.name for run in runs}
        log = LabelledLog(self.screen, names.values(), times=times)
        for each in merged_lines(runs):
            log.print(names[each.run_id], each.run_id, each.line)
        for run in runs:
            self.remark(f"{run.agent.name}: {ending_of(last_run(run))}")

    def _follow(self, agents: list[Agent], *, json: bool, times: bool) -> None:
        """Until Ctrl-C, which is the usual end of the command and no failure."""
        follower = RunFollower(Run.objects.filter(agent__in=agents))
        log = LabelledLog(self.screen, [agent.name for agent in agents], times=times)

        def show(each: RunLogLine) -> None:
            log.print(follower.agents[each.run_id], each.run_id, each.line)

        self._print_followed(follower, show, json=json)

    def _print_followed(
        self, follower: RunFollower, show: Callable[[RunLogLine], None], *, json: bool
    ) -> None:
        try:
            for each in follower.follow():
                agent = follower.agents[each.run_id]
                if not isinstance(each, RunLogLine):
                    self.remark(f"{agent}: run {each.run_id} {each.state}")
                elif json:
                    line = line_as_json(each.run_id, each.line)
                    self.screen.json_line({"agent": agent, **line})
                else:
                    show(each)
        except KeyboardInterrupt:
            return


def described(run: Run) -> dict[str, object]:
    complete = run.slot is None
    lines = list(stored_lines(run.pk, ended=complete))
    return log_as_json(run.agent.name, last_run(run), lines, complete=complete)


def find_agents(tenant: Tenant, names: list[str]) -> list[Agent]:
    """Those, or all of them."""
    if names:
        return [find_agent(tenant, name.removeprefix("agent:")) for name in dict.fromkeys(names)]
    agents = list(tenant.agents.order_by("name"))
    if not agents:
        raise NotFound(f"there are no agents yet ({PROGRAM} discover shows what is on disk)")
    return agents


def newest_of(agents: list[Agent]) -> list[Run]:
    runs = Run.objects.filter(agent__in=agents)
    keys = runs.order_by().values("agent").annotate(newest=Max("pk")).values("newest")
    return list(Run.objects.filter(pk__in=keys).select_related("agent").order_by("agent__name"))


def newest_run(tenant: Tenant, found: Run | Agent | None) -> Run:
    """The run itself, or the newest of the agent or of all."""
    if isinstance(found, Run):
        return found
    runs = Run.objects.filter(tenant=tenant).select_related("agent").order_by("-pk")
    newest = (runs.filter(agent=found) if isinstance(found, Agent) else runs).first()
    if newest is None:
        raise NotFound(no_run_text(found.name if isinstance(found, Agent) else ""))
    return newest
