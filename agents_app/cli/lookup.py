"""Finds rows by the names and numbers of the command line; errors suggest existing ones."""

from datetime import datetime

from agents_app.conf import PROGRAM
from agents_app.errors import NotFound, Refused
from agents_app.models import (
    DEFAULT_TENANT,
    Agent,
    Delivery,
    ResourceLock,
    Run,
    Schedule,
    Tenant,
    WorkItem,
)
from agents_app.names import did_you_mean
from agents_app.reports import in_project
from agents_app.signals import held_locks

# Longer numbers exceed the type of the keys.
LONGEST_NUMBER = 18


def find_tenant(name: str) -> Tenant:
    tenant = Tenant.objects.filter(name=name).first()
    if tenant is not None:
        return tenant
    if name == DEFAULT_TENANT:
        raise NotFound(
            f"the project has not been read yet: start Drover ({PROGRAM} up), "
            f"or read it now ({PROGRAM} discover --sync)"
        )
    names = Tenant.objects.values_list("name", flat=True)
    raise NotFound(f"there is no tenant {name!r}{did_you_mean(name, names)}")


def find_agent(tenant: Tenant, name: str) -> Agent:
    agent = tenant.agents.filter(name=name).first()
    if agent is not None:
        return agent
    guess = did_you_mean(name, in_project(tenant.agents.all()).values_list("name", flat=True))
    raise NotFound(f"there is no agent {name!r}{guess} ({PROGRAM} stat lists the agents)")


def find_run(tenant: Tenant, text: str) -> Run:
    number = _number(text, "run", f"{PROGRAM} stat shows the last run of each agent")
    run = Run.objects.filter(tenant=tenant, pk=number).select_related("agent", "work_item").first()
    if run is None:
        raise NotFound(f"there is no run {number}; old runs are removed by retention")
    return run


def find_work_item(tenant: Tenant, text: str) -> WorkItem:
    number = _number(text, "work item", f"{PROGRAM} queue list shows the numbers")
    item = WorkItem.objects.filter(tenant=tenant, pk=number).select_related("agent").first()
    if item is None:
        raise NotFound(f"there is no work item {number} ({PROGRAM} queue list shows the queue)")
    return item


def find_lock(tenant: Tenant, text: str, now: datetime) -> ResourceLock:
    """By number or URI."""
    held = held_locks(tenant.pk, now)
    lock = held.filter(pk=int(text)).first() if _is_number(text) else held.filter(uri=text).first()
    if lock is None:
        raise NotFound(f"there is no lock {text!r} ({PROGRAM} locks list shows the locks)")
    return lock


def find_delivery(tenant: Tenant, text: str) -> Delivery:
    """By number, or by the delivery id of the sender."""
    found = Delivery.objects.filter(tenant=tenant).select_related("source").order_by("-pk")
    delivery = found.filter(pk=int(text)).first() if _is_number(text) else None
    delivery = delivery or found.filter(delivery_id=text).first()
    if delivery is None:
        raise NotFound(
            f"there is no delivery {text!r} ({PROGRAM} deliveries list shows the deliveries)"
        )
    return delivery


def find_run_or_agent(tenant: Tenant, text: str) -> Run | Agent:
    """A number is a run, a name is an agent; `run:7` and `agent:7` resolve an ambiguity."""
    kind, _, rest = text.partition(":")
    if kind == "run" and rest:
        return find_run(tenant, rest)
    if kind == "agent" and rest:
        return find_agent(tenant, rest)
    if not _is_number(text):
        return find_agent(tenant, text)
    if tenant.agents.filter(name=text).exists():
        raise Refused(f"{text} is a run and an agent: use run:{text} or agent:{text}")
    return find_run(tenant, text)


def find_schedule(tenant: Tenant, text: str) -> Schedule:
    """By name, by AGENT/NAME if the name is not unique, or by number."""
    found = _named_schedules(tenant, text)
    if not found:
        raise NotFound(_no_schedule(tenant, text))
    return found[0]


def find_schedules(tenant: Tenant, text: str) -> list[Schedule]:
    """Like `find_schedule`; the name of an agent stands for all its schedules.

    For an agent with a single active or paused schedule, only that one."""
    if found := _named_schedules(tenant, text):
        return found
    agent = tenant.agents.filter(name=text).first()
    if agent is None:
        raise NotFound(_no_schedule(tenant, text))
    own = list(agent.schedules.select_related("agent").order_by("name"))
    if not own:
        raise NotFound(
            f"the agent {text} has no schedules: set `schedule` in its SKILL.md, "
            f"or use {PROGRAM} schedule create {text}"
        )
    in_use = [one for one in own if one.state in {Schedule.State.ACTIVE, Schedule.State.PAUSED}]
    return in_use if len(in_use) == 1 else own


def _named_schedules(tenant: Tenant, text: str) -> list[Schedule]:
    """One schedule or none; refuses a text that more than one schedule has as its name."""
    schedules = tenant.schedules.select_related("agent")
    number = text.removeprefix("#")
    found = list(schedules.filter(name=text).order_by("agent__name"))
    if _is_number(number):
        found += schedules.filter(pk=int(number)).exclude(pk__in=[one.pk for one in found])
    agent, slash, name = text.partition("/")
    if not found and slash:
        found = list(schedules.filter(agent__name=agent, name=name))
    if len(found) > 1:
        which = ", ".join(f"{one} (#{one.pk}, {one.state})" for one in found)
        raise Refused(f"{text!r} is ambiguous: use one of {which}")
    return found


def _no_schedule(tenant: Tenant, text: str) -> str:
    of_agent = tenant.schedules.filter(agent__name=text).values_list("name", flat=True)
    if own := [f"{text}/{name}" for name in of_agent.order_by("name")]:
        return f"{text!r} is an agent; its schedules are {', '.join(own)}"
    schedules = in_project(tenant.schedules.all(), "agent")
    names = list(schedules.values_list("agent__name", "name"))
    known = [name for _, name in names] + [f"{agent}/{name}" for agent, name in names]
    guess = did_you_mean(text, known)
    return f"there is no schedule {text!r}{guess} ({PROGRAM} schedule list shows the schedules)"


def _number(text: str, noun: str, hint: str) -> int:
    if not _is_number(text):
        raise Refused(f"{text!r} is not a {noun} number ({hint})")
    return int(text)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER
