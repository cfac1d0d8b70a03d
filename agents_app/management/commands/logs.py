"""Shows what runs printed, also while they run."""

from collections.abc import Callable, Sequence
from typing import Any

from django.core.management.base import CommandParser
from django.db.models import Max

from agents_app.cli import (
    DroverCommand,
    LabelledLog,
    RunFollower,
    RunLogLine,
    ending_of,
    find_agent,
    find_run_or_agent,
    find_tenant,
    merged_lines,
)
from agents_app.clock import local
from agents_app.errors import NotFound, Refused
from agents_app.models import Agent, Run, Tenant
from agents_app.output import LogLine, lines_until_end, stored_lines, text_until_end, whole_text
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
        parser.add_argument("targets", metavar="RUN|AGENT", nargs="*", default=[])
        parser.add_argument("--all", action="store_true", help="Of every agent.")
        parser.add_argument(
            *("-f", "--follow"),
            action="store_true",
            help="Go on: with a run until the run ends, with agents from run to run until Ctrl-C.",
        )
        parser.add_argument("--times", action="store_true", help="Put the time before each line.")

    def handle(self, *, tenant: str, targets: list[str], json: bool, **options: Any) -> None:
        owner = find_tenant(tenant)
        if options["all"] and targets:
            raise Refused("--all is every agent: leave the names out, or leave out --all")
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
                self.screen.json_line(described_line(run.pk, line))
        elif json:
            self.screen.json(described(run))
        else:
            self._print(run, follow=follow, times=times)
            run.refresh_from_db()
            self.remark(ending_of(run))

    def _print(self, run: Run, *, follow: bool, times: bool) -> None:
        if times:
            ended = run.slot is None
            lines = lines_until_end(run.pk) if follow else stored_lines(run.pk, ended=ended)
            for line in lines:
                self.screen.text(f"{local(line.at)}  {line.text}\n")
        else:
            for text in text_until_end(run.pk) if follow else [whole_text(run.pk)]:
                self.screen.text(text)

    # --- one agent --------------------------------------------------------------------------

    def _follow_one(self, agent: Agent, *, json: bool, times: bool) -> None:
        """The newest run, then each run to come, until Ctrl-C; lines without the agent's name."""
        newest = agent.runs.order_by("-pk").first()
        if newest is None:
            self.remark(f"{agent.name} has not run yet: waiting for its first run")
        elif newest.slot is None and not json:
            self._one(newest, follow=False, json=False, times=times)
        # A run that was unfinished is followed even if it has ended meanwhile.
        after = 0 if newest is None else newest.pk - (newest.slot is not None)
        follower = RunFollower(agent.runs.all(), after)
        self._print_followed(follower, lambda each: self._print_line(each.line, times), json=json)

    def _print_line(self, line: LogLine, times: bool) -> None:
        self.screen.text(f"{local(line.at)}  {line.text}\n" if times else f"{line.text}\n")

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
            self.remark(f"{run.agent.name}: {ending_of(run)}")

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
                    line = described_line(each.run_id, each.line)
                    self.screen.json_line({"agent": agent, **line})
                else:
                    show(each)
        except KeyboardInterrupt:
            return


def described(run: Run) -> dict[str, object]:
    lines = stored_lines(run.pk, ended=run.slot is None)
    output = [described_line(run.pk, line) for line in lines]
    # `run` and `output` are the names of version 0.1.0, which scripts read.
    same = {"run_id": run.pk, "lines": output, "complete": run.slot is None}
    return {"agent": run.agent.name, **same, "run": last_run(run), "output": output}


def described_line(run_id: int, line: LogLine) -> dict[str, object]:
    """As the API describes a line; `open` until the line has ended. `run` is an older name."""
    place = {
        "run_id": run_id,
        "run": run_id,
        "number": line.number,
        "stream": line.stream,
        "at": line.at,
    }
    return {**place, "text": line.text, "open": line.open}


def find_agents(tenant: Tenant, names: list[str]) -> list[Agent]:
    """Those, or all of them."""
    if names:
        return [find_agent(tenant, name.removeprefix("agent:")) for name in dict.fromkeys(names)]
    agents = list(tenant.agents.order_by("name"))
    if not agents:
        raise NotFound("there are no agents yet (manage.py discover shows what is on disk)")
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
        who = f"agent {found.name!r}" if isinstance(found, Agent) else "no agent"
        ran = "has not run yet" if found else "has run yet"
        raise NotFound(f"{who} {ran} (manage.py run AGENT runs one now)")
    return newest
