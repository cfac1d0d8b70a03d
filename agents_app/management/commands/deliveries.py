"""Shows received webhooks and why they matched or not, and plays one again."""

from typing import Any

from django.core.management.base import CommandParser

from agents_app import deliveries
from agents_app.cli.command import DroverCommand
from agents_app.cli.deliveries import LONGEST_BODY, described, reason_rows, shown
from agents_app.cli.find import find_delivery, find_tenant
from agents_app.cli.screen import shortened
from agents_app.cli.times import local
from agents_app.models import Delivery, Tenant

COLUMNS = ("delivery", "received", "source", "event", "outcome", "matched", "skipped", "reason")
OUTCOMES = tuple(str(value) for value in Delivery.Outcome.values)


class Command(DroverCommand):
    help = "List received webhooks, show one with the reason of each agent, or replay it."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
        listing = verbs.add_parser("list", help="The latest first.")
        listing.add_argument("--source", default="", help="Only those of this source.")
        listing.add_argument("--outcome", choices=OUTCOMES, help="Only those that ended so.")
        listing.add_argument("--limit", type=int, default=20, help="At most so many (20).")
        show = verbs.add_parser("show", help="One as it came, and who was told.")
        replay = verbs.add_parser("replay", help="Once more, for whoever wants it now.")
        for verb in (show, replay):
            verb.add_argument(
                "delivery", metavar="DELIVERY", help="Its number, or its sender's id."
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
            self._replay(find_delivery(owner, options["delivery"]), json=json)

    def _list(
        self, tenant: Tenant, *, source: str, outcome: str | None, limit: int, json: bool, **_: Any
    ) -> None:
        found = Delivery.objects.filter(tenant=tenant).select_related("source").defer("body")
        if source:
            found = found.filter(source__name=source)
        if outcome:
            found = found.filter(outcome=outcome)
        latest = list(found.order_by("-pk")[: max(1, limit)])
        if json:
            self.screen.json({"deliveries": [described(each) for each in latest]})
        elif latest:
            self.screen.table(COLUMNS, [_row(each) for each in latest])
        else:
            self.screen.say("no deliveries")

    def _show(self, delivery: Delivery, *, json: bool) -> None:
        facts = shown(delivery)
        if json:
            self.screen.json(facts)
            return
        for name in ("id", "source", "provider", "delivery_id", "signed_by", "event", "action"):
            self.screen.say(f"{name:12} {facts[name] or '-'}")
        self.screen.say(f"{'received':12} {local(delivery.received_at)}")
        if delivery.replayed_at:
            self.screen.say(f"{'replayed':12} {delivery.replays} x, {local(delivery.replayed_at)}")
        said = f": {delivery.reason}" if delivery.reason else ""
        self.screen.say(f"{'outcome':12} {delivery.outcome}{said}")
        if facts["agents"]:
            self.screen.table(("agent", "decision", "because"), reason_rows(facts["agents"]))
        if facts["work"]:
            rows = [(w["work_item"], w["agent"], w["state"], w["asked_by"]) for w in facts["work"]]
            self.screen.table(("work", "agent", "state", "asked by"), rows)
        body = facts["body"]
        cut = "" if len(body) <= LONGEST_BODY else f" (the first {LONGEST_BODY} of {len(body)})"
        self.screen.say(f"body{cut}:\n{body[:LONGEST_BODY]}")

    def _replay(self, delivery: Delivery, *, json: bool) -> None:
        receipt = deliveries.replay(delivery, self.by, self.now)
        text = f"delivery {receipt.delivery}: matched {receipt.matched}, skipped {receipt.skipped}"
        self.result(text, receipt, json=json)


def _row(delivery: Delivery) -> tuple[object, ...]:
    event = f"{delivery.event}.{delivery.action}" if delivery.action else delivery.event
    replayed = f"replayed {delivery.replays} x; " if delivery.replays else ""
    return (
        *(delivery.pk, delivery.received_at, delivery.source.name, shortened(event, 30)),
        *(delivery.outcome, delivery.matched, delivery.skipped),
        shortened(f"{replayed}{delivery.reason}", 50),
    )
