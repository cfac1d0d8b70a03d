"""Pages of calls, messages, locks and lock waits between agents."""

from django.contrib import admin
from django.utils.safestring import SafeString

from agents_app.admin.base import Act, RecordAdmin, Verb, utc_now
from agents_app.admin.filters import AGENT
from agents_app.admin.formatting import badge, link_to, when
from agents_app.errors import Refused
from agents_app.models import AgentCall, LockWait, Message, ResourceLock
from agents_app.runs import control


def _break(lock: ResourceLock, act: Act) -> str:
    if not control.break_lock(lock, act.by, act.now):
        raise Refused("already released")
    return f"Lock on {lock} broken; {lock.holder} gets an error at its next request"


BREAK = Verb("break", "Break", "lock_open", _break, danger=True)


@admin.register(ResourceLock)
class ResourceLockAdmin(RecordAdmin):
    verbs = (BREAK,)
    list_display = ["locked", "holder", "since", "until"]
    search_fields = ["uri", "holder"]
    ordering = ["uri"]
    fields = ["uri", "holder", "run", "held_since", "ttl_seconds", "expires_at"]

    @admin.display(description="URI", ordering="uri")
    def locked(self, row: ResourceLock) -> str:
        return row.uri

    @admin.display(description="Held since", ordering="held_since")
    def since(self, lock: ResourceLock) -> SafeString:
        return when(lock.held_since, utc_now())

    @admin.display(description="Until", ordering="expires_at")
    def until(self, lock: ResourceLock) -> SafeString:
        return when(lock.expires_at, utc_now())


@admin.register(LockWait)
class LockWaitAdmin(RecordAdmin):
    list_display = ["locked", "holder", "since"]
    search_fields = ["uri", "holder"]
    ordering = ["since"]

    @admin.display(description="URI", ordering="uri")
    def locked(self, row: LockWait) -> str:
        return row.uri


@admin.register(AgentCall)
class AgentCallAdmin(RecordAdmin):
    list_display = ["call", "caller", "called", "work", "shown_state", "created"]
    list_select_related = ["agent", "caller_run__agent", "work_item"]
    list_filter = [AGENT]
    ordering = ["-id"]
    fields = [
        *("caller_run", "agent", "work_item"),
        *("created_at", "deadline_at", "ended_at", "error"),
    ]

    @admin.display(description="Call", ordering="id")
    def call(self, call: AgentCall) -> str:
        return f"#{call.pk}"

    @admin.display(description="Caller")
    def caller(self, call: AgentCall) -> SafeString:
        return link_to(call.caller_run, f"{call.caller_run.agent.name}, run {call.caller_run_id}")

    @admin.display(description="Agent", ordering="agent__name")
    def called(self, call: AgentCall) -> SafeString:
        return link_to(call.agent)

    @admin.display(description="Work item")
    def work(self, call: AgentCall) -> SafeString:
        return link_to(call.work_item)

    @admin.display(description="State")
    def shown_state(self, call: AgentCall) -> SafeString:
        return badge("failed" if call.error else call.work_item.state, call.error)

    @admin.display(description="Created", ordering="created_at")
    def created(self, call: AgentCall) -> SafeString:
        return when(call.created_at, utc_now())


@admin.register(Message)
class MessageAdmin(RecordAdmin):
    list_display = ["message", "to", "sender", "beginning", "result", "created"]
    list_select_related = ["agent"]
    list_filter = [AGENT]
    search_fields = ["text", "sender"]
    ordering = ["-id"]
    fields = ["agent", "sender", "text", "created_at", "read_at", "run", "work_item"]

    @admin.display(description="Message", ordering="id")
    def message(self, message: Message) -> str:
        return f"#{message.pk}"

    @admin.display(description="To", ordering="agent__name")
    def to(self, message: Message) -> SafeString:
        return link_to(message.agent)

    @admin.display(description="Text")
    def beginning(self, message: Message) -> str:
        return message.text[:100]

    @admin.display(description="Result")
    def result(self, message: Message) -> str:
        if message.work_item_id:
            return f"work item {message.work_item_id}"
        return f"read by run {message.run_id}" if message.run_id else "unread"

    @admin.display(description="Sent", ordering="created_at")
    def created(self, message: Message) -> SafeString:
        return when(message.created_at, utc_now())
