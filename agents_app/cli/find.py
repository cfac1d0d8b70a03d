"""Finds what people name on the command line, and says what there is if it is not there."""

from collections.abc import Iterable
from difflib import get_close_matches

from agents_app.errors import NotFound, Refused
from agents_app.models import Agent, Run, Tenant, WorkItem
from agents_app.skills.sync import DEFAULT_TENANT

# Longer numbers are no keys, and the database driver refuses them.
LONGEST_NUMBER = 18


def find_tenant(name: str) -> Tenant:
    tenant = Tenant.objects.filter(name=name).first()
    if tenant is not None:
        return tenant
    if name == DEFAULT_TENANT:
        raise NotFound(
            "the project has not been read yet: start Drover (manage.py up), "
            "or read it now (manage.py discover --sync)"
        )
    names = Tenant.objects.values_list("name", flat=True)
    raise NotFound(f"there is no tenant {name!r}{did_you_mean(name, names)}")


def find_agent(tenant: Tenant, name: str) -> Agent:
    agent = tenant.agents.filter(name=name).first()
    if agent is not None:
        return agent
    guess = did_you_mean(name, tenant.agents.values_list("name", flat=True))
    raise NotFound(f"there is no agent {name!r}{guess} (manage.py stat lists them)")


def find_run(tenant: Tenant, text: str) -> Run:
    number = _number(text, "run", "manage.py stat shows the last run of each agent")
    run = Run.objects.filter(tenant=tenant, pk=number).select_related("agent", "work_item").first()
    if run is None:
        raise NotFound(f"there is no run {number}: old runs are removed after a while")
    return run


def find_work_item(tenant: Tenant, text: str) -> WorkItem:
    number = _number(text, "work item", "manage.py queue list shows the numbers")
    item = WorkItem.objects.filter(tenant=tenant, pk=number).select_related("agent").first()
    if item is None:
        raise NotFound(f"there is no work item {number} (manage.py queue list shows what waits)")
    return item


def find_run_or_agent(tenant: Tenant, text: str) -> Run | Agent:
    """A number is a run, a name is an agent; an agent may be called 7, and then people must say."""
    kind, _, rest = text.partition(":")
    if kind == "run" and rest:
        return find_run(tenant, rest)
    if kind == "agent" and rest:
        return find_agent(tenant, rest)
    if not _is_number(text):
        return find_agent(tenant, text)
    if tenant.agents.filter(name=text).exists():
        raise Refused(f"{text} may be a run or an agent: write run:{text} or agent:{text}")
    return find_run(tenant, text)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    close = get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _number(text: str, noun: str, hint: str) -> int:
    if not _is_number(text):
        raise Refused(f"{text!r} is not the number of a {noun} ({hint})")
    return int(text)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER
