"""What people do to tenants: create, disable, enable, scale, delete; each act is noted."""

from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef, Q, QuerySet

from agents_app.accounts.removal import remove_tenant
from agents_app.accounts.tokens import NewToken, create_token
from agents_app.database import in_transaction
from agents_app.errors import Refused, TriggerParseError
from agents_app.events import journal
from agents_app.models import DEFAULT_TENANT, ApiToken, Firing, Run, Schedule, Tenant
from agents_app.names import agent_name_problem
from agents_app.runs import TENANT_DISABLED, dispatch, lock_agents, schedule_states
from agents_app.schedules import fire_after, goes_on_at
from agents_app.triggers import IntervalTrigger, parse_trigger

S = Schedule.State
LARGEST_SCALE = 10_000


def create_tenant(name: str, by: str, now: datetime) -> tuple[Tenant, NewToken]:
    """With its first token, which may do everything a tenant may."""
    if name != DEFAULT_TENANT and agent_name_problem(name):
        raise Refused(
            f"{name[:80]!r} is no tenant name: use a-z, 0-9 and single hyphens between them, "
            "at most 64 characters"
        )

    def change() -> tuple[Tenant, NewToken]:
        tenant, created = Tenant.objects.get_or_create(name=name)
        if not created:
            raise Refused(f"there is a tenant {name!r} already")
        journal.record(journal.JournalEntry("tenant.created", now, tenant.pk, detail=by))
        return tenant, create_token(tenant, "first", ApiToken.Scope.ADMIN, by, now)

    return in_transaction(change)


def disable_tenant(tenant: Tenant, by: str, now: datetime) -> bool:
    """Nothing fires or starts any more; what runs goes on to its end."""
    enabled = Tenant.objects.filter(pk=tenant.pk, disabled_at__isnull=True)

    def change() -> bool:
        moved = bool(enabled.update(disabled_at=now))
        if moved:
            journal.record(journal.JournalEntry("tenant.disabled", now, tenant.pk, detail=by))
        return moved

    return in_transaction(change)


def enable_tenant(tenant: Tenant, by: str, now: datetime) -> bool:
    """Its schedules fire at their next time again, and what waits may start."""

    def change() -> bool:
        held_back = list(_held_back(tenant))
        lock_agents(schedule.agent_id for schedule in held_back)
        disabled = Tenant.objects.filter(pk=tenant.pk, disabled_at__isnull=False)
        if not disabled.update(disabled_at=None):
            return False
        for schedule in held_back:
            _let_go(schedule, now)
        journal.record(journal.JournalEntry("tenant.enabled", now, tenant.pk, detail=by))
        return True

    enabled = in_transaction(change)
    dispatch.admit_tenant(tenant.pk, now)
    return enabled


def scale_project(tenant: Tenant, scale: int | None, by: str, now: datetime) -> None:
    """A cap on all unfinished runs together, or none; holds until the project's file changes."""
    if scale is not None and not 1 <= scale <= LARGEST_SCALE:
        raise Refused(f"a scale of {scale} is out of range: give 1 to {LARGEST_SCALE}, or none")
    detail = f"{by}: {'no cap' if scale is None else scale}"

    def change() -> None:
        Tenant.objects.filter(pk=tenant.pk).update(scale=scale)
        journal.record(journal.JournalEntry("project.scaled", now, tenant.pk, detail=detail))

    in_transaction(change)
    dispatch.admit_tenant(tenant.pk, now)


def close_tenant(tenant: Tenant, by: str, now: datetime) -> int:
    """The first half of deleting one: nothing starts, what runs is told to end; how many do so."""
    if tenant.name == DEFAULT_TENANT:
        raise Refused(f"the tenant {DEFAULT_TENANT} owns the project: it is not deleted")
    disable_tenant(tenant, by, now)
    unfinished = Run.objects.filter(tenant=tenant, slot__isnull=False)
    dispatch.request_stop(unfinished, now, f"its tenant was deleted by {by}")
    return unfinished.count()


def delete_tenant(tenant: Tenant, by: str, now: datetime) -> None:
    """With everything it owns; refused while a run of it is still ending."""
    close_tenant(tenant, by, now)
    default, _ = in_transaction(lambda: Tenant.objects.get_or_create(name=DEFAULT_TENANT))
    remove_tenant(tenant, by, now, told=default)


# --- what was moved on ----------------------------------------------------------------------


def _held_back(tenant: Tenant) -> QuerySet[Schedule]:
    """One-shots that were paused for it, and recurring ones that were moved on."""
    since = Tenant.objects.filter(pk=tenant.pk).values("disabled_at")[:1]
    skipped = Firing.objects.filter(
        schedule=OuterRef("pk"),
        reason=Firing.Reason.TENANT_DISABLED,
        recorded_at__gte=since,
    )
    moved = Q(state=S.ACTIVE, one_shot=False, next_fire_at__isnull=False) & Exists(skipped)
    return tenant.schedules.filter(moved | Q(state=S.PAUSED, pause_note=TENANT_DISABLED))


def _let_go(seen: Schedule, now: datetime) -> None:
    schedule = Schedule.objects.get(pk=seen.pk)
    try:
        if schedule.state == S.PAUSED:
            upcoming = goes_on_at(schedule, now)
            schedule_states.resume_schedule(schedule.pk, S.PAUSED, upcoming)
        elif schedule.next_fire_at is not None:
            # Compare and set: beat may have claimed it meanwhile.
            same = Schedule.objects.filter(pk=schedule.pk, next_fire_at=schedule.next_fire_at)
            same.update(next_fire_at=_in_its_rhythm(schedule, schedule.next_fire_at, now))
    except (TriggerParseError, OverflowError):
        return  # the claim will say what is wrong with it


def _in_its_rhythm(schedule: Schedule, armed: datetime, now: datetime) -> datetime:
    """Its first instant after now; an interval of elapsed time is counted back to it."""
    trigger = parse_trigger(schedule.expression)
    if isinstance(trigger, IntervalTrigger) and schedule.interval_seconds is None:
        return armed - trigger.every * max(0, (armed - now - timedelta.resolution) // trigger.every)
    return min(armed, fire_after(schedule, now) or armed)
