"""The checks of doctor about the fleet: agents, credentials, containers, schedules, rules."""

import os
import pwd
import shutil
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from django.db.models import Count, Q

from agents_app.conf import CONF, PROGRAM
from agents_app.errors import DroverError
from agents_app.maintenance.findings import OK, WARNING, WRONG, Check, CheckResults, one_line
from agents_app.maintenance.tenant_checks import check_tenants
from agents_app.models import (
    DEFAULT_TENANT,
    Agent,
    Credential,
    NotifyTarget,
    RuleBook,
    RuleState,
    Schedule,
    Tenant,
    WebhookSource,
    WorkClaim,
    WorkItem,
    WorkSource,
)
from agents_app.notifications import target_label
from agents_app.project import missing_source
from agents_app.rules.language import (
    Rule,
    parse_source,
    problem_with_position,
    read_source,
    rule_warnings,
    rules_file,
    rules_file_label,
)
from agents_app.runners import (
    DOCKER,
    RUNNERS,
    EngineNotFound,
    EngineRefused,
    EngineUnavailable,
    base_environment,
)
from agents_app.secrets import how_to_set, missing_of, reload_keys
from agents_app.triggers import BootTrigger, next_fire, parse_trigger, zone

NEARLY_FULL = 0.8
START_DOCKER = "start Docker, or set DOCKER_HOST; the work of these agents stays queued"
# Findings of one kind; `manage.py rules` lists all.
MAX_RULES_LISTED = 10


def check_agents(_: datetime) -> CheckResults:
    path = base_environment(os.environ)["PATH"]
    agents = Agent.objects.filter(removed_at__isnull=True, scale__gt=0)
    for agent in agents.order_by("name"):
        if problem := _program_problem(agent, path):
            yield WRONG, f"{agent.name}: {problem}", f"fix {agent.directory}/{agent.file_name}"
    yield OK, f"{len(agents)} enabled", ""


def _program_problem(agent: Agent, path: str) -> str:
    runtime = agent.runtime.get("type", "process")
    if not agent.command:
        return "it has no command and no harness, and the project has none either"
    if runtime not in RUNNERS:
        return f"there is no runtime {runtime!r} here"
    if runtime == "host-user":
        return _user_problem(str(agent.runtime.get("run_as", "drover-agent")))
    # Other runtimes search for the program in an image or as another user.
    if runtime != "process":
        return ""
    program = str(agent.command[0])
    if program.startswith("./"):
        program = str(Path(agent.directory) / program[2:])
    return "" if shutil.which(program, path=path) else f"cannot run {program}: no such program"


def _user_problem(name: str) -> str:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return f"there is no user {name!r} on this host: useradd --system --create-home {name}"
    if os.geteuid() != 0 and not shutil.which("sudo"):
        return f"only root, or sudo, can run it as {name}: install sudo"
    return ""


def check_credentials(_: datetime) -> CheckResults:
    """Compares names and key ids; no credential is decrypted."""
    agents = Agent.objects.filter(removed_at__isnull=True, scale__gt=0)
    for agent in agents.select_related("tenant").order_by("name"):
        uses = {"its runs fail": agent.credentials, "its hooks fail": agent.hook_credentials}
        for effect, declared in uses.items():
            for name in missing_of(agent.tenant_id, declared) if declared else ():
                detail = f"{agent.name}: the credential {name} is not set: {effect}"
                yield WRONG, detail, how_to_set(name, agent.tenant.name)
    stored = list(Credential.objects.order_by("pk"))
    # Reading the keys creates one if there is none.
    known = reload_keys().ids if stored else ()
    for credential in stored:
        if credential.key_id not in known:
            yield WRONG, f"{credential}: its key is missing", "put the key back, or set it again"
    yield OK, f"{len(stored)} set", ""


def check_containers(_: datetime) -> CheckResults:
    for problem, advice in _container_problems():
        yield WRONG, problem, advice


def _container_problems() -> Iterator[tuple[str, str]]:
    """(problem, advice) for each enabled agent that cannot run in a container on this host."""
    enabled = Agent.objects.filter(removed_at__isnull=True, scale__gt=0)
    for agent in enabled.filter(runtime__type="container").order_by("name"):
        image = str(agent.runtime.get("image", ""))
        try:
            DOCKER.image_environment(image or "none")
        except EngineNotFound:
            if agent.runtime.get("pull") != "missing" or not image:
                advice = f"docker pull {image}" if image else "set runtime.image, or the project's"
                yield f"{agent.name}: no image {image!r} on this machine", advice
        except EngineUnavailable:
            yield f"{agent.name}: Docker is not reachable at {DOCKER.address}", START_DOCKER
        except EngineRefused as error:
            yield f"{agent.name}: Docker refused the request: {error}", START_DOCKER


def check_schedules(now: datetime) -> CheckResults:
    """Active schedules that cannot fire: stored by another version or written past the checks."""
    active = Schedule.objects.filter(state=Schedule.State.ACTIVE).select_related("agent")
    for schedule in active.order_by("pk"):
        try:
            trigger, place = parse_trigger(schedule.expression), zone(schedule.timezone)
            if isinstance(trigger, BootTrigger):
                continue  # due when Drover starts after the next boot
            problem = "" if next_fire(trigger, now, place) else "it can never fire again"
        except (DroverError, ValueError) as error:
            problem = one_line(error)
        if not problem and schedule.next_fire_at is None:
            problem = "it has no next fire time"
        if problem:
            yield WRONG, f"{schedule} ({schedule.expression}): {problem}", "edit or cancel it"
    yield OK, f"{len(active)} active", ""


def check_webhooks(_: datetime) -> CheckResults:
    """Agents that wait for deliveries of a source that does not exist."""
    known: defaultdict[int, set[str]] = defaultdict(set)
    sources = WebhookSource.objects.filter(removed_at__isnull=True)
    for tenant_id, name in sources.values_list("tenant_id", "name"):
        known[tenant_id].add(name)
    agents = Agent.objects.filter(removed_at__isnull=True).exclude(webhooks=[])
    for agent in agents.order_by("name"):
        names = {str(webhook["source"]) for webhook in agent.webhooks}
        for name in sorted(names - known[agent.tenant_id]):
            problem = missing_source(name, known[agent.tenant_id])
            yield WRONG, f"{agent.name}: {problem}", f"fix `webhooks` in {agent.directory}/SKILL.md"
    yield OK, f"{sum(map(len, known.values()))} sources", ""


def check_queues(_: datetime) -> CheckResults:
    waiting = Count("work_items", filter=Q(work_items__state=WorkItem.State.QUEUED))
    for agent in Agent.objects.annotate(waiting=waiting).filter(waiting__gt=0).order_by("name"):
        size = max(1, agent.work_queue_size)
        if agent.waiting >= size * NEARLY_FULL:
            verdict = WRONG if agent.waiting >= size else WARNING
            detail = f"{agent.name}: {agent.waiting} of {size} waiting; more drop the oldest"
            yield verdict, detail, "raise its scale or its work_queue_size"


def check_notifications(_: datetime) -> CheckResults:
    """Targets to which notifications cannot be sent."""
    for target in NotifyTarget.objects.filter(failing_since__isnull=False).order_by("pk"):
        since = f"{target.failing_since:%F %H:%M} UTC"
        detail = f"{target_label(target)}: {target.last_error} (since {since})"
        yield WARNING, detail, "check [[notify]] in config.toml; sending is retried for a day"


def check_work_sources(_: datetime) -> CheckResults:
    """Sources that could not be read at the last poll, and claims that could not be reported."""
    for source in WorkSource.objects.exclude(last_error="").order_by("pk"):
        advice = "check `work_source` of the agent or schedule; the next firing tries again"
        yield WARNING, f"{source}: {source.last_error}", advice
    stuck = WorkClaim.objects.exclude(stage=WorkClaim.Stage.ENDED).filter(tries__gt=1)
    for claim in stuck.select_related("source").order_by("pk"):
        detail = f"{claim.source}: {claim.item_id} is not reported: {claim.last_error}"
        yield WARNING, detail, "the report is tried again; check the rights of the credential"


def check_budgets(_: datetime) -> CheckResults:
    """A used-up budget is no error, but an easily overlooked reason why nothing runs."""
    advice = "raise the budget in the file, or wait"
    for tenant in Tenant.objects.filter(over_budget_until__isnull=False):
        until = f"{tenant.over_budget_until:%Y-%m-%d %H:%M %Z}"
        yield WARNING, f"the budget of the project ({tenant.name}) is used up until {until}", advice
    for agent in Agent.objects.filter(over_budget_until__isnull=False).order_by("name"):
        until = f"{agent.over_budget_until:%Y-%m-%d %H:%M %Z}"
        yield WARNING, f"the budget of {agent.name} is used up until {until}", advice


def check_rules(now: datetime) -> CheckResults:
    """Checks the rules file on disk, also while beat does not run."""
    source, name = read_source(rules_file(CONF.project)), rules_file_label(CONF.project)
    for error in source.errors:
        detail = f"{problem_with_position(error)} (expected {error['expected']})"
        yield WRONG, detail, f"fix {name}; {PROGRAM} rules test shows the line"
    for book in RuleBook.objects.select_related("tenant"):
        if book.disabled_at:
            advice = f"save {name} again, or restart Drover"
            yield WRONG, f"no rule{_of(book.tenant)} is evaluated: {book.crash}", advice
        if book.is_silent(now):
            until = (
                f"{book.silent_until:%Y-%m-%d %H:%M %Z}" if book.silent_until else "further notice"
            )
            who = f"{book.silenced_by} silenced the messages of rules{_of(book.tenant)}"
            detail = f"{who} until {until}"
            yield WARNING, detail, f"{PROGRAM} rules silence off"
    rules = parse_source(source).rules
    yield from _list_some(list(_rule_warnings(rules)), f"fix {name}, or add the agent")
    yield from _list_some(list(_failing_rules()), f"{PROGRAM} rules list shows the next attempts")
    yield OK, f"{len(rules)} in {name}", ""


def _of(tenant: Tenant) -> str:
    return "" if tenant.name == DEFAULT_TENANT else f" of {tenant}"


def _rule_warnings(rules: Iterable[Rule]) -> Iterator[str]:
    """The file belongs to the project's own tenant, and so do the agents that it names."""
    agents = Agent.objects.filter(tenant__name=DEFAULT_TENANT, removed_at__isnull=True)
    known = set(agents.values_list("name", flat=True))
    for rule in rules:
        yield from (f"line {rule.line}: {warning}" for warning in rule_warnings(rule, known))


def _failing_rules() -> Iterator[str]:
    """Rules that are no longer in the file are left out."""
    failing = RuleState.objects.filter(status=RuleState.Status.BACKOFF, next_due_at__isnull=False)
    for row in failing.order_by("line", "pk"):
        times = "once" if row.failures == 1 else f"{row.failures} times in a row"
        yield f"{row.name} failed {times} and waits: {row.reason}"


def _list_some(details: Sequence[str], advice: str) -> CheckResults:
    for detail in details[:MAX_RULES_LISTED]:
        yield WARNING, detail, advice
    if more := len(details[MAX_RULES_LISTED:]):
        yield WARNING, f"and {more} more of this kind", advice


FLEET_CHECKS: Mapping[str, Check] = {
    "agents": check_agents,
    "containers": check_containers,
    "credentials": check_credentials,
    "schedules": check_schedules,
    "webhooks": check_webhooks,
    "queues": check_queues,
    "notifications": check_notifications,
    "work sources": check_work_sources,
    "budgets": check_budgets,
    "rules": check_rules,
    "tenants": check_tenants,
}
