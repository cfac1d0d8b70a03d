"""Creates, lists and changes schedules, and explains why a schedule did not run."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser
from django.db.models import Case, Q, QuerySet, Value, When

from agents_app.cli import (
    AnyOrderParser,
    EnqueueCommand,
    find_agent,
    find_schedule,
    find_schedules,
    find_tenant,
)
from agents_app.console import (
    ENDED_BY_A_RUN,
    LONGEST_NOTE,
    MOST_FIRES,
    MOST_SHOWN,
    add_verbs,
    draft_values,
    schedule_as_json,
    wait_seconds,
    whole_of,
)
from agents_app.console import schedule_screens as screens
from agents_app.errors import Refused, TriggerParseError
from agents_app.models import DEFAULT_TENANT, Firing, Run, Schedule, Tenant
from agents_app.reports import in_project
from agents_app.schedules import (
    edit,
    preview_of,
    read_firings,
    read_history,
    read_retried_work,
    shown_schedule,
)
from agents_app.schedules.why import explain, explain_past, find_obstacles
from agents_app.triggers import moment_of, past_moment_of, with_accepted, zone

S = Schedule.State


class Command(EnqueueCommand):
    help = "Create, list, pause, resume, cancel or retry schedules, or explain why one did not run."
    examples: tuple[tuple[str, str], ...] = (
        ("schedule create reporter 'every monday at 09:00'", "In the agent's time zone."),
        (
            "schedule create reporter --cron '0 9 * * 1-5' --dry-run",
            "Show the next fires without saving.",
        ),
        ("schedule list --state paused", "Paused schedules."),
        ("schedule show reporter/main", "All settings and counters."),
        ("schedule why reporter", "The only schedule of the agent, or a list of several."),
        ("schedule next main --count 10", "Its next ten fires."),
        ("schedule pause main --until tomorrow", "Pause until tomorrow."),
        ("schedule resume main --now", "Resume and fire now."),
        ("schedule cancel main", "Cancel permanently."),
        ("schedule retry main --wait", "Retry the last failed fire and follow it."),
        ("schedule history main --limit 5", "Its last five firings."),
        ("schedule firings --outcome skipped", "Skipped firings of all schedules."),
        ("schedule why main --at 'yesterday at 09:00'", "Why it did not run at this time."),
    )

    def add_arguments(self, parser: CommandParser) -> None:
        add_verbs(parser, AnyOrderParser, DEFAULT_TENANT)

    def handle(self, *, verb: str, tenant: str, **options: Any) -> None:
        owner = find_tenant(tenant)
        changes: dict[str, Callable[..., None]] = {
            "pause": self._pause,
            "resume": self._resume,
            "cancel": self._cancel,
            "retry": self._retry,
        }
        tenant_verbs: dict[str, Callable[..., None]] = {
            "create": self._create,
            "list": self._list,
            "firings": self._firings,
        }
        try:
            if verb in tenant_verbs:
                tenant_verbs[verb](owner, **options)
            elif verb in changes:
                changes[verb](find_schedule(owner, options["name"]), **options)
            else:
                self._read(owner, verb, **options)
        except TriggerParseError as error:
            raise with_accepted(error) from error

    # --- changes ----------------------------------------------------------------------------

    def _create(self, tenant: Tenant, *, json: bool, dry_run: bool, **options: Any) -> None:
        agent = find_agent(tenant, options["agent"])
        if agent.removed_at:
            raise Refused(f"the directory of {agent.name} was removed: restore it first")
        now = self.now
        draft = edit.Draft(**draft_values(options, agent.timezone, now))
        if dry_run:
            self._show_created(edit.draft_schedule(agent, draft, now), now, json=json)
            return
        schedule = edit.create(agent, draft, self.by, now)
        self._show_created(schedule, now, json=json)
        for obstacle in find_obstacles(schedule, now):
            if obstacle.code not in ENDED_BY_A_RUN:
                self.remark(obstacle.text)

    def _show_created(self, schedule: Schedule, now: datetime, *, json: bool) -> None:
        seen = preview_of(schedule, now, screens.SHOWN_FIRES)
        screens.show_created(self.screen, shown_schedule(schedule), seen, now, json)

    def _pause(self, schedule: Schedule, *, until: str, note: str, json: bool, **_: Any) -> None:
        if len(note) > LONGEST_NOTE:
            raise Refused(f"the note has {len(note)} characters; the maximum is {LONGEST_NOTE}")
        now, local = self.now, zone(schedule.timezone)
        end = moment_of("--until", until, now, local) if until else None
        changed = edit.pause(schedule, self.by, now, note, end)
        schedule.refresh_from_db()
        if not changed and schedule.state != S.PAUSED:
            raise Refused(f"{schedule} is {schedule.state}: only an active schedule can be paused")
        text = screens.paused_text(shown_schedule(schedule), end if changed else None, now, changed)
        self._done(text, schedule, {"changed": changed}, json=json)

    def _resume(self, schedule: Schedule, *, json: bool, **options: Any) -> None:
        now = self.now
        changed = edit.resume(schedule, self.by, now, at_once=options["now"])
        schedule.refresh_from_db()
        if not changed and schedule.state != S.ACTIVE:
            raise Refused(f"{schedule} is {schedule.state}: only a paused schedule can be resumed")
        text = screens.resumed_text(shown_schedule(schedule), now, changed)
        self._done(text, schedule, {"changed": changed}, json=json)

    def _cancel(self, schedule: Schedule, *, json: bool, **_: Any) -> None:
        dropped = edit.cancel(schedule, self.by, self.now)
        schedule.refresh_from_db()
        for run in Run.objects.filter(schedule=schedule, slot__isnull=False):
            self.remark(screens.run_continues_text(run.pk))
        text = screens.canceled_text(shown_schedule(schedule), dropped)
        self._done(text, schedule, {"called_off": dropped}, json=json)

    def _retry(self, schedule: Schedule, *, json: bool, wait: bool, timeout: str, **_: Any) -> None:
        seconds = wait_seconds(wait=wait, timeout=timeout)
        item = edit.retry(schedule, self.by, self.now)
        self.report(item, json=json, wait=wait, seconds=seconds)

    def _done(self, text: str, schedule: Schedule, more: dict[str, Any], *, json: bool) -> None:
        self.result(
            text, {"schedule": schedule_as_json(shown_schedule(schedule)), **more}, json=json
        )

    # --- output -----------------------------------------------------------------------------

    def _list(self, tenant: Tenant, *, json: bool, limit: str, **options: Any) -> None:
        found = live_first(tenant.schedules.select_related("agent"))
        if options["agent"]:
            found = found.filter(agent=find_agent(tenant, options["agent"]))
        elif not options["all"]:
            found = in_project(found, "agent")
        if options["state"]:
            found = in_shown_state(found, options["state"])
        limited = found[: whole_of(limit, "--limit", 1, MOST_SHOWN)]
        shown = [shown_schedule(schedule) for schedule in limited]
        screens.show_list(self.screen, shown, found.count(), self.now, json)

    def _read(self, tenant: Tenant, verb: str, *, name: str, json: bool, **options: Any) -> None:
        """Show one schedule, or list the schedules of the agent with this name."""
        found = find_schedules(tenant, name)
        if len(found) > 1:
            shown = [shown_schedule(schedule) for schedule in found]
            screens.show_list(self.screen, shown, len(found), self.now, json)
            self.remark(screens.name_one_text(name, verb, shown))
            return
        verbs: dict[str, Callable[..., None]] = {
            "show": self._show,
            "next": self._next,
            "history": self._history,
            "why": self._why,
        }
        verbs[verb](found[0], json=json, **options)

    def _show(self, schedule: Schedule, *, json: bool, **_: Any) -> None:
        now = self.now
        seen = preview_of(schedule, now, screens.SHOWN_FIRES)
        screens.show_one(self.screen, shown_schedule(schedule), seen, now, json)

    def _next(self, schedule: Schedule, *, json: bool, count: str, **_: Any) -> None:
        now = self.now
        seen = preview_of(schedule, now, whole_of(count, "--count", 1, MOST_FIRES))
        screens.show_next(self.screen, shown_schedule(schedule), seen, now, json)

    def _history(self, schedule: Schedule, *, json: bool, limit: str, **_: Any) -> None:
        number = whole_of(limit, "--limit", 1, MOST_SHOWN)
        firings, again = read_history(schedule, number), read_retried_work(schedule, number)
        screens.show_history(self.screen, shown_schedule(schedule), firings, again, json)

    def _firings(self, tenant: Tenant, *, json: bool, limit: str, **options: Any) -> None:
        found = Firing.objects.filter(tenant=tenant).order_by("-recorded_at", "-pk")
        if options["agent"]:
            found = found.filter(schedule__agent=find_agent(tenant, options["agent"]))
        elif not options["all"]:
            found = in_project(found, "schedule__agent")
        if outcome := options["outcome"]:
            found = found.filter(outcome="" if outcome == "undecided" else outcome)
        number = whole_of(limit, "--limit", 1, MOST_SHOWN)
        entries = read_firings(found[:number])
        shown = [(shown_schedule(schedule), entry) for schedule, entry in entries]
        screens.show_firings(self.screen, shown, json)

    def _why(self, schedule: Schedule, *, json: bool, at: str, limit: str, **_: Any) -> None:
        now = self.now
        if at:
            moment = past_moment_of("--at", at, now, zone(schedule.timezone))
            past = explain_past(schedule, moment, now)
            screens.show_past(self.screen, shown_schedule(schedule), past, now, json)
        else:
            seen = explain(schedule, now, whole_of(limit, "--limit", 1, MOST_SHOWN))
            screens.show_why(self.screen, shown_schedule(schedule), seen, json)


def in_shown_state(found: "QuerySet[Schedule]", state: str) -> "QuerySet[Schedule]":
    """The schedules whose `shown_state` is the given one."""
    disabled = Q(agent__scale=0) | Q(agent__removed_at__isnull=False)
    if state == "disabled":
        return found.filter(disabled, state=S.ACTIVE)
    found = found.filter(state=state)
    return found.exclude(disabled) if state == S.ACTIVE else found


def live_first(found: "QuerySet[Schedule]") -> "QuerySet[Schedule]":
    """Active, paused, failed, then ended schedules."""
    order = [When(state=state, then=Value(place)) for place, state in enumerate(_IN_ORDER)]
    return found.order_by(Case(*order, default=Value(len(_IN_ORDER))), "agent__name", "name")


_IN_ORDER = (S.ACTIVE, S.PAUSED, S.FAILED)
