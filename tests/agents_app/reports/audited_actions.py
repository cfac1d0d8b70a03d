"""One action for each event of the audit, on objects whose names look like the end of a detail."""

from collections.abc import Callable
from dataclasses import dataclass

from django.contrib.auth.models import User

from agents_app.accounts import change_project, login_links, logins, removal, tenants, tokens
from agents_app.conf import ROOT
from agents_app.models import (
    Agent,
    ApiToken,
    Credential,
    ResourceLock,
    Run,
    Schedule,
    Tenant,
    WebhookSecret,
    WebhookSource,
    WorkItem,
)
from agents_app.rules.engine import end_silence, start_silence
from agents_app.runs import control, dispatch
from agents_app.schedules import edit
from agents_app.secrets.credentials import remove_credential, set_credential
from agents_app.secrets.types import parse_name
from agents_app.signals import messages
from agents_app.webhooks import deliveries, sources
from tests.agents_app.fleet import NOON, Fleet, at
from tests.gateway_app.api.tenant_objects import TenantObjects, create_objects

# The name of every object and the note of every change.
FORGED = "x: by admin: stopped by admin from admin"
OTHER = "the test"


@dataclass(frozen=True)
class Stage:
    """The objects of a tenant that an action can change."""

    fleet: Fleet
    own: TenantObjects

    @property
    def tenant(self) -> Tenant:
        return self.fleet.tenant

    @property
    def agent(self) -> Agent:
        return self.own.agent

    @property
    def running(self) -> Run:
        return Run.objects.get(state=Run.State.RUNNING)

    @property
    def token(self) -> ApiToken:
        return ApiToken.objects.get(pk=self.own.token_id)

    @property
    def source(self) -> WebhookSource:
        return WebhookSource.objects.get()


Action = Callable[[Stage, str], object]


def prepare(fleet: Fleet) -> Stage:
    return Stage(fleet, create_objects(fleet, FORGED))


# --- agents, runs and queues ----------------------------------------------------------------


def resume_agent(stage: Stage, by: str) -> None:
    control.pause_agent(stage.agent, OTHER, NOON)
    control.resume_agent(stage.agent, by, NOON)


def forget_agent(stage: Stage, by: str) -> None:
    gone = stage.fleet.agent(f"{FORGED} again", removed_at=NOON)
    removal.forget_agent(gone, by, NOON)


def restore_work(stage: Stage, by: str) -> None:
    control.drop_work(stage.own.item, OTHER, NOON)
    control.restore_work(WorkItem.objects.get(pk=stage.own.item.pk), by, NOON)


def restore_queue(stage: Stage, by: str) -> None:
    control.clear_queue(WorkItem.objects.all(), OTHER, NOON)
    control.restore_cleared(stage.tenant, by, NOON)


def resume_scheduler(stage: Stage, by: str) -> None:
    control.pause_tenant(stage.tenant, OTHER, NOON)
    control.resume_tenant(stage.tenant, by, NOON)


# --- schedules ------------------------------------------------------------------------------


def create_schedule(stage: Stage, by: str) -> Schedule:
    draft = edit.Draft(text="every monday", name=f"{FORGED} again")
    return edit.create(stage.agent, draft, by, NOON)


def edit_schedule(stage: Stage, by: str) -> None:
    edit.edit(create_schedule(stage, OTHER), {"prompt": FORGED}, by, NOON)


def resume_schedule(stage: Stage, by: str) -> None:
    edit.pause(stage.own.schedule, OTHER, NOON)
    edit.resume(stage.own.schedule, by, NOON)


def delete_schedule(stage: Stage, by: str) -> None:
    schedule = create_schedule(stage, OTHER)
    removal.close_schedule(schedule, OTHER, NOON)
    removal.remove_schedule(schedule, by, NOON)


# --- secrets, webhooks, rules ---------------------------------------------------------------


def set_a_credential(stage: Stage, by: str) -> None:
    set_credential(stage.tenant, parse_name("form_key"), {"value": FORGED}, by, NOON)


def remove_a_credential(stage: Stage, by: str) -> None:
    set_a_credential(stage, OTHER)
    remove_credential(Credential.objects.get(), by, NOON)


def add_secret(stage: Stage, by: str) -> WebhookSecret:
    return sources.add_secret(stage.source, FORGED, "long enough", by, NOON)


def hear_rules(stage: Stage, by: str) -> None:
    start_silence(stage.tenant, OTHER, NOON)
    end_silence(stage.tenant, by, NOON)


# --- tenants and logins ---------------------------------------------------------------------


def another_tenant(by: str = OTHER) -> Tenant:
    return tenants.create_tenant("acme", by, NOON)[0]


def enable_tenant(_stage: Stage, by: str) -> None:
    other = another_tenant()
    tenants.disable_tenant(other, OTHER, NOON)
    tenants.enable_tenant(other, by, NOON)


def change_directory(_stage: Stage, by: str) -> None:
    change_project(another_tenant(), f"{ROOT}/docs", by, NOON)


def fail_to_log_in(_stage: Stage, by: str) -> None:
    for number in range(logins.MAX_FAILURES_OF_NAME):
        logins.record_failure(logins.begin_attempt(by, "203.0.113.7", at(number)), at(number))


def log_in(_stage: Stage, by: str) -> None:
    logins.record_success(logins.begin_attempt(by, "203.0.113.7", NOON), NOON)


def create_link(_stage: Stage, by: str) -> None:
    login_links.create_link_token(_staff().username, by, NOON)


def change_password(_stage: Stage, by: str) -> None:
    login_links.record_password_change(_staff(), by, NOON)


def _staff() -> User:
    return User.objects.create_user("dora", is_staff=True)


# --- all of them ----------------------------------------------------------------------------

ACTIONS: dict[str, Action] = {
    "agent.forgotten": forget_agent,
    "agent.messaged": lambda s, by: messages.send(s.agent, FORGED, by, NOON),
    "agent.paused": lambda s, by: control.pause_agent(s.agent, by, NOON, FORGED),
    "agent.resumed": resume_agent,
    "agent.scaled": lambda s, by: control.scale_agent(s.agent, 2, by, NOON),
    "agent.stopped": lambda s, by: control.stop_agent(s.agent, by, NOON),
    "credential.removed": remove_a_credential,
    "credential.set": set_a_credential,
    "delivery.replayed": lambda s, by: deliveries.replay(s.own.delivery, by, NOON),
    "lock.broken": lambda s, by: control.break_lock(ResourceLock.objects.get(), by, NOON),
    "login.failed": fail_to_log_in,
    "login.link_created": create_link,
    "login.locked": fail_to_log_in,
    "login.password_changed": change_password,
    "login.succeeded": log_in,
    "project.scaled": lambda s, by: tenants.scale_project(s.tenant, 3, by, NOON),
    "queue.cleared": lambda s, by: control.clear_queue(WorkItem.objects.all(), by, NOON),
    "queue.restored": restore_queue,
    "rules.heard": hear_rules,
    "rules.silenced": lambda s, by: start_silence(s.tenant, by, NOON, at(hours=1)),
    "run.rerun": lambda s, by: dispatch.enqueue_rerun(s.own.run, by, NOON),
    "run.stop_requested": lambda s, by: control.stop_run(s.running, by, NOON),
    "schedule.canceled": lambda s, by: edit.cancel(create_schedule(s, OTHER), by, NOON),
    "schedule.created": create_schedule,
    "schedule.deleted": delete_schedule,
    "schedule.edited": edit_schedule,
    "schedule.paused": lambda s, by: edit.pause(s.own.schedule, by, NOON, FORGED),
    "schedule.resumed": resume_schedule,
    "schedule.retried": lambda s, by: edit.retry(s.own.schedule, by, NOON),
    "scheduler.paused": lambda s, by: control.pause_tenant(s.tenant, by, NOON, FORGED),
    "scheduler.resumed": resume_scheduler,
    "scheduler.stopping": lambda s, by: control.begin_drain(by, NOON, keep_queue=False),
    "tenant.created": lambda _, by: another_tenant(by),
    "tenant.deleted": lambda _, by: tenants.delete_tenant(another_tenant(), by, NOON),
    "tenant.disabled": lambda _, by: tenants.disable_tenant(another_tenant(), by, NOON),
    "tenant.enabled": enable_tenant,
    "tenant.project_changed": change_directory,
    "token.created": lambda s, by: tokens.create_token(s.tenant, FORGED, "read", by, NOON),
    "token.revoked": lambda s, by: tokens.revoke_token(s.token, by, NOON),
    "token.rotated": lambda s, by: tokens.rotate_tokens(s.tenant, by, NOON),
    "webhook.secret_added": add_secret,
    "webhook.secret_revoked": lambda s, by: sources.revoke_secret(add_secret(s, OTHER), by, NOON),
    "webhook.source_saved": lambda s, by: sources.save_source(s.source, by, NOON),
    "webhook.source_switched": lambda s, by: sources.set_enabled(s.source, by, NOON, on=False),
    "work.dropped": lambda s, by: control.drop_work(s.own.item, by, NOON),
    "work.requested": lambda s, by: control.run_agent(s.agent, by, NOON, prompt=FORGED),
    "work.restored": restore_work,
}
