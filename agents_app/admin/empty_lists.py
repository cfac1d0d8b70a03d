"""Texts of empty lists: what the list would contain, and how to add entries."""

from collections.abc import Mapping
from dataclasses import dataclass

from agents_app.conf import TYPED_PROGRAM


@dataclass(frozen=True, slots=True)
class EmptyList:
    title: str
    # Code stands between backticks.
    text: str
    command: str = ""

    @property
    def pieces(self) -> list[tuple[str, bool]]:
        """The text in pieces, each with whether it is code."""
        return [(piece, number % 2 == 1) for number, piece in enumerate(self.text.split("`"))]


EMPTY_LISTS: Mapping[str, EmptyList] = {
    "agent": EmptyList(
        "No agents yet",
        "An agent is a directory with a SKILL.md file in the project. New agents appear within two "
        "seconds. The overview shows how to create the first one.",
        f"{TYPED_PROGRAM} discover",
    ),
    "schedule": EmptyList(
        "No schedules yet",
        "A schedule starts an agent at given times. Add `schedule: every 15 minutes` to the "
        "agent's SKILL.md, or create a schedule here or on the command line.",
        f'{TYPED_PROGRAM} schedule create AGENT "every monday at 09:00"',
    ),
    "rulestate": EmptyList(
        "No rules yet",
        "A rule is a line in the project's scheduler.rules that performs an action when its "
        "condition holds. The file is read within ten seconds.",
        f"{TYPED_PROGRAM} rules test",
    ),
    "workitem": EmptyList(
        "The queue is empty",
        "Schedules, webhooks, calls, messages and users create work items. A work item that cannot "
        "start yet is queued here.",
        f"{TYPED_PROGRAM} run AGENT",
    ),
    "run": EmptyList(
        "No runs yet",
        "A run starts when an agent has a work item and a free slot.",
        f"{TYPED_PROGRAM} run AGENT",
    ),
    "credential": EmptyList(
        "No credentials yet",
        "Agents declare the secrets they need under `credentials` in their SKILL.md. Credentials "
        "are stored encrypted and passed only to the runs of these agents.",
        f"{TYPED_PROGRAM} credential set TYPE:INSTANCE",
    ),
    "agentcall": EmptyList(
        "No calls yet",
        "A running agent calls another agent with `drover call`.",
    ),
    "message": EmptyList(
        "No messages yet",
        "Users, rules and other agents send messages. A current run reads the message; otherwise "
        "it becomes a work item.",
        f'{TYPED_PROGRAM} message AGENT "TEXT"',
    ),
    "resourcelock": EmptyList(
        "No locks",
        "Agents take one with `drover lock`, so that no other run uses the same resource. Locks "
        "are released at the end of their run.",
    ),
    "lockwait": EmptyList(
        "No lock waits",
        "Runs that wait for a lock held by another run are listed here.",
    ),
    "delivery": EmptyList(
        "No deliveries yet",
        "Every request to /webhooks/ is stored here with its outcome and can be replayed. Create a "
        "webhook source first, then configure the sender with the address on the source's page.",
    ),
    "webhooksource": EmptyList(
        "No webhook sources yet",
        "A webhook source is a sender with an address below /webhooks/ and a secret for its "
        "signatures. Add one here or in config.toml.",
    ),
    "webhooksecret": EmptyList(
        "No webhook secrets yet",
        "Add a secret on the page of its webhook source. Signatures are checked with it.",
    ),
    "worksource": EmptyList(
        "No work sources yet",
        "A work source gives an agent issues or files to work on. Add `work_source` to the agent "
        "or to one of its schedules; it appears here with its first poll.",
    ),
    "workclaim": EmptyList(
        "No claims yet",
        "A claim is an item of a work source that an agent works on, from its start to its report.",
    ),
    "notifytarget": EmptyList(
        "No notifications configured",
        "Add [[notify]] to config.toml to send events, such as failed runs, to a URL.",
    ),
    "firing": EmptyList(
        "No firings yet",
        "Each due time of a schedule is recorded here with its outcome, also if no run started.",
        f"{TYPED_PROGRAM} schedule list",
    ),
    "runevent": EmptyList(
        "No events yet",
        "Events record the start and end of runs and the actions of users, in order.",
    ),
    "usage": EmptyList(
        "No usage yet",
        "Reported tokens and costs are added up here by agent and day. Claude Code and Codex "
        "report them automatically, other agents with `drover usage`.",
    ),
    "heartbeat": EmptyList(
        "No heartbeats yet",
        "Each run has one heartbeat a minute with its latest output. Runs of less than a minute "
        "have none.",
    ),
    "worker": EmptyList(
        "No workers yet",
        "Workers execute runs. They start and stop with Drover.",
        f"{TYPED_PROGRAM} up",
    ),
    "machinesnapshot": EmptyList(
        "No machines yet",
        "Beat stores a snapshot of each host every minute.",
        f"{TYPED_PROGRAM} up",
    ),
    "scheduler": EmptyList(
        "Drover has never been started",
        "The state of the scheduler is shown here.",
        f"{TYPED_PROGRAM} up",
    ),
    "tenant": EmptyList(
        "No tenants yet",
        "The tenant `default` owns the project's agents and is created at the first start.",
        f"{TYPED_PROGRAM} up",
    ),
    "apitoken": EmptyList(
        "No API tokens yet",
        "A token lets a program use the API in the name of a tenant.",
        f"{TYPED_PROGRAM} token create NAME",
    ),
    "loginfailure": EmptyList("No failed logins", "Failed logins of the last day are listed here."),
    "periodictask": EmptyList(
        "No periodic tasks yet",
        "Periodic tasks are the system duties of beat, which creates them at its start.",
        f"{TYPED_PROGRAM} up",
    ),
    "intervalschedule": EmptyList("No intervals yet", "Periodic tasks may use an interval."),
    "crontabschedule": EmptyList("No crontabs yet", "Periodic tasks may use a crontab."),
    "solarschedule": EmptyList("No solar events yet", "Periodic tasks may use a solar event."),
    "clockedschedule": EmptyList("No clocked times yet", "Periodic tasks may use a single time."),
}
OTHER_LIST = EmptyList("No entries yet", "")


def empty_list(model_name: str) -> EmptyList:
    return EMPTY_LISTS.get(model_name, OTHER_LIST)
