"""Why a list is empty, and what fills it: said where the list would be."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Empty:
    title: str
    why: str
    command: str = ""


EMPTY: Mapping[str, Empty] = {
    "agent": Empty(
        "No agents yet",
        "An agent is a directory with a SKILL.md in the project; it appears by itself within two "
        "seconds. The overview shows how to make the first one.",
        "python manage.py discover",
    ),
    "schedule": Empty(
        "No schedules yet",
        "A schedule fires an agent by time. Write `schedule: every 15 minutes` into the agent's "
        "SKILL.md, or make one here or in a terminal.",
        'python manage.py schedule create AGENT "every monday at 09:00"',
    ),
    "rulestate": Empty(
        "No rules yet",
        "A rule is a line in the project's scheduler.rules that says what is done when the fleet "
        "is in some state; it is read within ten seconds.",
        "python manage.py rules test",
    ),
    "workitem": Empty(
        "Nothing is queued, and nothing was",
        "Work appears when a schedule fires, a webhook arrives, an agent calls another one, or "
        "somebody asks. What cannot start at once waits here.",
        "python manage.py run AGENT",
    ),
    "run": Empty(
        "Nothing has run yet",
        "A run begins when an agent has work and a free slot: when its schedule fires, a webhook "
        "arrives, or somebody asks.",
        "python manage.py run AGENT",
    ),
    "credential": Empty(
        "No credentials are set",
        "Agents name the secrets they need under `credentials` in their SKILL.md. What is set here "
        "is sealed, and given to their runs alone.",
        "python manage.py credential set TYPE:INSTANCE",
    ),
    "agentcall": Empty(
        "No agent has called another one",
        "A running agent asks another one with `drover call`; each question and what came of it is "
        "listed here.",
    ),
    "message": Empty(
        "No messages",
        "Messages come from people, rules and other agents. A live run reads them, otherwise they "
        "become work.",
    ),
    "resourcelock": Empty(
        "No locks are held",
        "A running agent takes a lock with `rlock`, so that no other run touches the same thing "
        "meanwhile. Locks end with their run.",
    ),
    "lockwait": Empty(
        "Nobody waits for a lock",
        "Runs that ask for a lock that another one holds are listed here.",
    ),
    "delivery": Empty(
        "No webhooks have arrived",
        "Everything that is posted to /webhooks/ is kept here with what became of it, and can be "
        "replayed. First make a source, then point its sender at the address on the source's page.",
    ),
    "webhooksource": Empty(
        "No webhook sources",
        "A source is somebody who may post to /webhooks/ and the secret they sign with. Add one, "
        "or write it into config.toml.",
    ),
    "webhooksecret": Empty(
        "No secrets yet",
        "A source gets its first secret when it is made; what it signs with is checked by it.",
    ),
    "notifytarget": Empty(
        "Nobody is told",
        "Those under [[notify]] in config.toml are told when runs fail, and listed here.",
    ),
    "firing": Empty(
        "Nothing has been due yet",
        "Each time a schedule is due, that instant is recorded here with its outcome, also when "
        "nothing ran.",
        "python manage.py schedule list",
    ),
    "runevent": Empty(
        "Nothing has happened yet",
        "The journal lists how runs begin and end and what people do, in order.",
    ),
    "usage": Empty(
        "Nothing was used",
        "Runs that tell of their tokens and dollars are added up here by agent and day: Claude "
        "Code and Codex do so by themselves, others with `drover usage`.",
    ),
    "heartbeat": Empty(
        "No heartbeats",
        "Each run that goes on gets one a minute, with the last lines it printed. Short runs end "
        "before their first.",
    ),
    "worker": Empty(
        "No worker has ever started",
        "Workers execute the runs; they come and go with Drover.",
        "python manage.py up",
    ),
    "machinesnapshot": Empty(
        "No snapshots yet",
        "Beat takes one every minute while Drover runs.",
        "python manage.py up",
    ),
    "scheduler": Empty(
        "Drover has never been started",
        "What beat says of itself is shown here.",
        "python manage.py up",
    ),
    "tenant": Empty(
        "No tenants yet",
        "The tenant `default` owns the project's agents, and is made at the first start.",
        "python manage.py up",
    ),
    "loginfailure": Empty(
        "Nobody failed to log in", "Wrong passwords of the last day are counted here."
    ),
}
OTHERWISE = Empty("Nothing here yet", "Rows appear here as soon as there are some.")


def why_empty(model_name: str) -> Empty:
    return EMPTY.get(model_name, OTHERWISE)
