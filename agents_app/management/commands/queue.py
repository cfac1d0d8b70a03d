"""Lists, drops, clears and restores queued work items."""

from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser
from django.db.models import QuerySet

from agents_app.cli import DroverCommand, find_agent, find_tenant, find_work_item
from agents_app.conf import PROGRAM
from agents_app.console import shortened
from agents_app.errors import Refused
from agents_app.models import Tenant, WorkItem
from agents_app.runs import control

COLUMNS = ("item", "agent", "trigger", "requested by", "since", "not before", "prompt")


class Command(DroverCommand):
    help = "List queued work items, drop one, clear the queue, or restore cleared work items."
    examples = (
        ("queue list reporter", "Queued work items of this agent."),
        ("queue drop 12", "Drop work item 12."),
        ("queue clear reporter", "Remove all its queued work items."),
        ("queue restore", "Put cleared work items back."),
    )

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
        listing = verbs.add_parser("list", help="List queued work items, oldest first.")
        listing.add_argument("agent", metavar="AGENT", nargs="?", default="")
        drop = verbs.add_parser("drop", help="Drop one work item.")
        drop.add_argument("item", metavar="ITEM", help="Number of the work item.")
        clear = verbs.add_parser(
            "clear", help="Remove queued work items; `restore` puts them back."
        )
        clear.add_argument("agent", metavar="AGENT", nargs="?", default="")
        restore = verbs.add_parser(
            "restore", help="Restore work items removed by `clear` or a shutdown."
        )
        for verb in (listing, drop, clear, restore):
            self.add_common(verb)

    def handle(self, *, verb: str, tenant: str, json: bool, **options: Any) -> None:
        owner = find_tenant(tenant)
        if verb == "drop":
            self._drop(find_work_item(owner, options["item"]), json=json)
        elif verb == "restore":
            self._say("restored", control.restore_cleared(owner, self.by, self.now), json=json)
        elif verb == "clear":
            cleared = control.clear_queue(waiting(owner, options["agent"]), self.by, self.now)
            self._say("cleared", cleared, json=json)
        else:
            self._list(owner, waiting(owner, options["agent"]), json=json)

    def _list(self, tenant: Tenant, items: QuerySet[WorkItem], *, json: bool) -> None:
        cleared = WorkItem.objects.filter(tenant=tenant, state=WorkItem.State.CLEARED).count()
        if json:
            self.screen.json({"items": [described(item) for item in items], "cleared": cleared})
            return
        if rows := [item_row(item, self.now) for item in items]:
            self.screen.table(COLUMNS, rows)
        else:
            self.screen.say("the queue is empty")
        if cleared:
            self.screen.say(f"{cleared} cleared ({PROGRAM} queue restore puts them back)")

    def _drop(self, item: WorkItem, *, json: bool) -> None:
        if not control.drop_work(item, self.by, self.now):
            item.refresh_from_db()
            raise Refused(f"work item {item.pk} is not queued: it is {item.state}")
        self._say("dropped", 1, json=json)

    def _say(self, done: str, count: int, *, json: bool) -> None:
        self.result(
            f"{done} {count} work item{'' if count == 1 else 's'}", {done: count}, json=json
        )


def waiting(tenant: Tenant, agent: str) -> QuerySet[WorkItem]:
    items = WorkItem.objects.filter(tenant=tenant, state=WorkItem.State.QUEUED)
    if agent:
        items = items.filter(agent=find_agent(tenant, agent))
    return items.select_related("agent").order_by("pk")


def item_row(item: WorkItem, now: datetime) -> tuple[object, ...]:
    # Only a retry has a later start.
    later = item.available_at if item.available_at > now else None
    requester, prompt = shortened(item.requested_by, 30), shortened(item.prompt, 40)
    return item.pk, item.agent.name, item.trigger, requester, item.created_at, later, prompt


def described(item: WorkItem) -> dict[str, object]:
    return {
        "id": item.pk,
        "agent": item.agent.name,
        "state": str(item.state),
        "reason": item.reason,
        "schedule_id": item.schedule_id,
        "trace_id": item.trace_id,
        "finished_at": item.finished_at,
        "trigger": str(item.trigger),
        "requested_by": item.requested_by,
        "prompt": item.prompt,
        "attempts": item.attempts,
        "created_at": item.created_at,
        "available_at": item.available_at,
    }
