"""Creating, disabling, enabling, scaling and deleting tenants; each change is in the journal."""

from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef, Q, QuerySet

from agents_app.accounts.project_directories import checked_project, lock_tenants
from agents_app.accounts.removal import remove_tenant
from agents_app.accounts.tokens import NewToken, create_token
from agents_app.database import in_transaction
from agents_app.errors import Refused, TriggerParseError
from agents_app.events import journal
from agents_app.models import DEFAULT_TENANT, ApiToken, Firing, Run, Schedule, Tenant
from agents_app.names import agent_name_problem
from agents_app.runs import TENANT_DISABLED, dispatch, lock_agents, schedule_states
from agents_app.schedules import fire_after, next_fire_after_pause
from agents_app.triggers import IntervalTrigger, parse_trigger

S = Schedule.State
LARGEST_SCALE = 10_000


def create_tenant(
    name: str, by: str, now: datetime, project: str | None = None
) -> tuple[Tenant, NewToken]:
    """Create a tenant with its first token, which has the scope admin; `project` is the directory
    of its agents."""
    if name != DEFAULT_TENANT and agent_name_problem(name):
        raise Refused(
            f"{name[:80]!r} is not a valid tenant name: use a-z, 0-9 and single hyphens "
            "between them, at most 64 characters"
        )

    def change() -> tuple[Tenant, NewToken]:
        lock_tenants()
        directory = "" if project is None else checked_project(project, name)
        tenant, created = Tenant.objects.get_or_create(name=name, defaults={"project": directory})
        if not created:
            raise Refused(f"a tenant {name!r} exists already")
        _record_event("tenant.created", tenant, by, now, tenant.project)
        return tenant, create_token(tenant, "first", ApiToken.Scope.ADMIN, by, now)

    return in_transaction(change)


def disable_tenant(tenant: Tenant, by: str, now: datetime) -> bool:
    """Stop schedules from firing and work from starting; runs continue. False: it was disabled."""
    enabled = Tenant.objects.filter(pk=tenant.pk, disabled_at__isnull=True)

    def change() -> bool:
        moved = bool(enabled.update(disabled_at=now))
        if moved:
            _record_event("tenant.disabled", tenant, by, now)
        return moved

    return in_transaction(change)


def enable_tenant(tenant: Tenant, by: str, now: datetime) -> bool:
    """Let schedules fire at their next time again and queued work start. False: it was enabled."""

    def change() -> bool:
        affected = list(_affected_schedules(tenant))
        lock_agents(schedule.agent_id for schedule in affected)
        disabled = Tenant.objects.filter(pk=tenant.pk, disabled_at__isnull=False)
        if not disabled.update(disabled_at=None):
            return False
        for schedule in affected:
            _rearm(schedule, now)
        _record_event("tenant.enabled", tenant, by, now)
        return True

    enabled = in_transaction(change)
    dispatch.admit_tenant(tenant.pk, now)
    return enabled


def scale_project(tenant: Tenant, scale: int | None, by: str, now: datetime) -> None:
    """Set the limit on all unfinished runs together; None removes it. A change of the project's
    file sets it again."""
    if scale is not None and not 1 <= scale <= LARGEST_SCALE:
        raise Refused(f"a scale of {scale} is out of range: give 1 to {LARGEST_SCALE}, or none")

    def change() -> None:
        Tenant.objects.filter(pk=tenant.pk).update(scale=scale)
        cap = "no cap" if scale is None else str(scale)
        _record_event("project.scaled", tenant, by, now, cap)

    in_transaction(change)
    dispatch.admit_tenant(tenant.pk, now)


def close_tenant(tenant: Tenant, by: str, now: datetime) -> int:
    """Disable the tenant and request a stop of its runs, before `delete_tenant`; returns the number
    of unfinished runs."""
    if tenant.name == DEFAULT_TENANT:
        raise Refused(f"the tenant {DEFAULT_TENANT} owns the project and cannot be deleted")
    disable_tenant(tenant, by, now)
    unfinished = Run.objects.filter(tenant=tenant, slot__isnull=False)
    dispatch.request_stop(unfinished, now, f"its tenant was deleted by {by}", by=by)
    return unfinished.count()


def delete_tenant(tenant: Tenant, by: str, now: datetime) -> None:
    """Delete the tenant with everything it owns; refused while one of its runs is unfinished."""
    close_tenant(tenant, by, now)
    default, _ = in_transaction(lambda: Tenant.objects.get_or_create(name=DEFAULT_TENANT))
    remove_tenant(tenant, by, now, journal_of=default)


def _record_event(name: str, tenant: Tenant, by: str, now: datetime, note: str = "") -> None:
    detail = f"{by}: {note}" if note else by
    journal.record(journal.JournalEntry(name, now, tenant.pk, detail=detail, actor=by))


# --- schedules of a disabled tenant ---------------------------------------------------------


def _affected_schedules(tenant: Tenant) -> QuerySet[Schedule]:
    """One-shots that were paused because the tenant is disabled, and recurring schedules that
    skipped firings meanwhile."""
    since = Tenant.objects.filter(pk=tenant.pk).values("disabled_at")[:1]
    skipped = Firing.objects.filter(
        schedule=OuterRef("pk"),
        reason=Firing.Reason.TENANT_DISABLED,
        recorded_at__gte=since,
    )
    moved = Q(state=S.ACTIVE, one_shot=False, next_fire_at__isnull=False) & Exists(skipped)
    return tenant.schedules.filter(moved | Q(state=S.PAUSED, pause_note=TENANT_DISABLED))


def _rearm(seen: Schedule, now: datetime) -> None:
    schedule = Schedule.objects.get(pk=seen.pk)
    try:
        if schedule.state == S.PAUSED:
            upcoming = next_fire_after_pause(schedule, now)
            schedule_states.resume_schedule(schedule.pk, now, S.PAUSED, upcoming)
        elif schedule.next_fire_at is not None:
            # Compare and set: beat may have claimed it meanwhile.
            same = Schedule.objects.filter(pk=schedule.pk, next_fire_at=schedule.next_fire_at)
            upcoming = _next_regular_fire(schedule, schedule.next_fire_at, now)
            same.update(next_fire_at=upcoming, updated_at=now)
    except (TriggerParseError, OverflowError):
        return  # the claim reports what is wrong with the schedule


def _next_regular_fire(schedule: Schedule, armed: datetime, now: datetime) -> datetime:
    """The first regular fire time after now; that of an interval is counted back from `armed`."""
    trigger = parse_trigger(schedule.expression)
    if isinstance(trigger, IntervalTrigger) and schedule.interval_seconds is None:
        return armed - trigger.every * max(0, (armed - now - timedelta.resolution) // trigger.every)
    return min(armed, fire_after(schedule, now) or armed)
