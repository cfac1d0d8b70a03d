"""Lists, shows and replays deliveries."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.core.management.base import CommandParser
from django.db.models import QuerySet

from agents_app.cli import (
    LONGEST_BODY,
    DroverCommand,
    decision_rows,
    delivery_as_json,
    delivery_in_full,
    find_delivery,
    find_tenant,
)
from agents_app.clock import HOST_ZONE, local
from agents_app.conf import PROGRAM
from agents_app.console import shortened
from agents_app.errors import NotFound, Refused
from agents_app.models import Delivery, Tenant
from agents_app.names import did_you_mean
from agents_app.triggers import past_moment_of
from agents_app.webhooks import deliveries

COLUMNS = ("delivery", "received", "source", "event", "outcome", "matched", "skipped", "reason")
ID_HELP = "Number, or delivery id of the sender."
OUTCOMES = tuple(str(value) for value in Delivery.Outcome.values)


class Command(DroverCommand):
    help = "List deliveries, show one with the decision for each agent, or replay some."
    examples = (
        ("deliveries list --outcome unmatched", "Deliveries that matched no agent."),
        ("deliveries list --outcome refused", "Requests with a wrong signature."),
        ("deliveries show 12", "Content of delivery 12 and the decision for each agent."),
        ("deliveries replay 12", "Apply the current filters to delivery 12 again."),
        (
            "deliveries replay --source github --since '2 hours ago'",
            "All deliveries of the last two hours.",
        ),
    )

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
        listing = verbs.add_parser("list", help="List deliveries, latest first.")
        listing.add_argument("--source", default="", help="Only deliveries of this source.")
        listing.add_argument(
            "--outcome", choices=OUTCOMES, help="Only deliveries with this outcome."
        )
        listing.add_argument("--limit", type=int, default=20, help="Maximum number (20).")
        show = verbs.add_parser("show", help="Show the content and the decisions of one delivery.")
        show.add_argument("delivery", metavar="DELIVERY", help=ID_HELP)
        replay = verbs.add_parser("replay", help="Apply the current filters to deliveries again.")
        replay.add_argument("deliveries", metavar="DELIVERY", nargs="*", help=ID_HELP)
        replay.add_argument(
            "--since",
            metavar="TIME",
            default="",
            help="All deliveries since this time, such as 09:00.",
        )
        replay.add_argument("--source", default="", help="With --since: only of this source.")
        replay.add_argument(
            "--outcome", choices=OUTCOMES, help="With --since: only with this outcome."
        )
        for verb in (listing, show, replay):
            self.add_common(verb)

    def handle(self, *, verb: str, tenant: str, json: bool, **options: Any) -> None:
        owner = find_tenant(tenant)
        if verb == "list":
            self._list(owner, json=json, **options)
        elif verb == "show":
            self._show(find_delivery(owner, options["delivery"]), json=json)
        else:
            self._replay(chosen(owner, now=self.now, **options), json=json)

    def _list(
        self, tenant: Tenant, *, source: str, outcome: str | None, limit: int, json: bool, **_: Any
    ) -> None:
        found = narrowed(tenant, source, outcome).select_related("source").defer("body")
        latest = list(found.order_by("-pk")[: max(1, limit)])
        if json:
            self.screen.json({"deliveries": [delivery_as_json(each) for each in latest]})
        elif latest:
            self.screen.table(COLUMNS, [_row(each) for each in latest])
        else:
            self.screen.say("no deliveries")

    def _show(self, delivery: Delivery, *, json: bool) -> None:
        facts = delivery_in_full(delivery)
        if json:
            self.screen.json(facts)
            return
        for name in ("id", "source", "provider", "delivery_id", "signed_by", "event", "action"):
            self.screen.say(f"{name:12} {facts[name] or '-'}")
        self.screen.say(f"{'received':12} {local(delivery.received_at)}")
        if delivery.replayed_at:
            self.screen.say(
                f"{'replayed':12} {delivery.replays} times, {local(delivery.replayed_at)}"
            )
        reason = f": {delivery.reason}" if delivery.reason else ""
        self.screen.say(f"{'outcome':12} {delivery.outcome}{reason}")
        if facts["agents"]:
            self.screen.table(("agent", "decision", "reason"), decision_rows(facts["agents"]))
        if facts["work"]:
            rows = [(w["work_item"], w["agent"], w["state"], w["asked_by"]) for w in facts["work"]]
            self.screen.table(("work item", "agent", "state", "requested by"), rows)
        body = facts["body"]
        cut = (
            ""
            if len(body) <= LONGEST_BODY
            else f" (first {LONGEST_BODY} of {len(body)} characters)"
        )
        self.screen.say(f"body{cut}:\n{body[:LONGEST_BODY]}")

    def _replay(self, chosen: Sequence[Delivery], *, json: bool) -> None:
        receipts = []
        with self.progress("replaying", len(chosen)) as report:
            for done, delivery in enumerate(chosen, start=1):
                receipts.append(deliveries.replay(delivery, self.by, self.now))
                report(done)
        if json:
            self.screen.json(receipts[0] if len(receipts) == 1 else {"replayed": receipts})
            return
        for one in receipts:
            text = f"delivery {one.delivery}: {one.matched} matched, {one.skipped} skipped"
            self.screen.say(text)


def chosen(
    tenant: Tenant, *, now: datetime, deliveries: list[str], since: str, **only: Any
) -> Sequence[Delivery]:
    """The named deliveries, or all since a time, oldest first."""
    if bool(deliveries) == bool(since):
        raise Refused(
            f"name deliveries or use --since TIME ({PROGRAM} deliveries list shows the numbers)"
        )
    if deliveries:
        return [find_delivery(tenant, text) for text in dict.fromkeys(deliveries)]
    moment = past_moment_of("--since", since, now, ZoneInfo(HOST_ZONE))
    found = narrowed(tenant, only["source"], only["outcome"]).filter(received_at__gte=moment)
    # Their bodies are not stored.
    found = found.exclude(outcome=Delivery.Outcome.REFUSED)
    if not (some := list(found.select_related("source").order_by("pk"))):
        raise NotFound(f"no matching delivery since {local(moment)}")
    return some


def narrowed(tenant: Tenant, source: str, outcome: str | None) -> "QuerySet[Delivery]":
    found = Delivery.objects.filter(tenant=tenant)
    if source:
        known = tenant.webhook_sources.values_list("name", flat=True)
        if source not in known:
            raise NotFound(f"there is no webhook source {source!r}{did_you_mean(source, known)}")
        found = found.filter(source__name=source)
    return found.filter(outcome=outcome) if outcome else found


def _row(delivery: Delivery) -> tuple[object, ...]:
    event = f"{delivery.event}.{delivery.action}" if delivery.action else delivery.event
    replayed = f"replayed {delivery.replays} times; " if delivery.replays else ""
    return (
        *(delivery.pk, delivery.received_at, delivery.source.name, shortened(event, 30)),
        *(delivery.outcome, delivery.matched, delivery.skipped),
        shortened(f"{replayed}{delivery.reason}", 50),
    )
