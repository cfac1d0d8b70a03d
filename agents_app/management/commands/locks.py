"""Lists and breaks the locks of agents."""

from typing import Any

from django.core.management.base import CommandParser

from agents_app.cli import DroverCommand, find_lock, find_tenant
from agents_app.console import shortened
from agents_app.errors import NotFound
from agents_app.models import ResourceLock, Tenant
from agents_app.runs import control
from agents_app.signals import held_locks

COLUMNS = ("lock", "uri", "holder", "since", "until")


class Command(DroverCommand):
    help = "List the locks that agents hold, or break one."
    examples = (
        ("locks list", "Locks with holder and expiry."),
        ("locks break file:///srv/report.csv", "Break the lock on this URI."),
    )

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
        listing = verbs.add_parser("list", help="List locks, oldest first.")
        breaking = verbs.add_parser("break", help="Remove a lock without its holder's consent.")
        breaking.add_argument("lock", metavar="LOCK", help="Number or URI of the lock.")
        for verb in (listing, breaking):
            self.add_common(verb)

    def handle(self, *, verb: str, tenant: str, json: bool, **options: Any) -> None:
        owner = find_tenant(tenant)
        if verb == "break":
            self._break(find_lock(owner, options["lock"], self.now), json=json)
        else:
            self._list(owner, json=json)

    def _list(self, tenant: Tenant, *, json: bool) -> None:
        locks = list(held_locks(tenant.pk, self.now))
        if json:
            self.screen.json({"locks": [_described(lock) for lock in locks]})
        elif locks:
            self.screen.table(COLUMNS, [_row(lock) for lock in locks])
        else:
            self.screen.say("no locks")

    def _break(self, lock: ResourceLock, *, json: bool) -> None:
        if not control.break_lock(lock, self.by, self.now):
            raise NotFound(f"the lock on {lock.uri} was already released")
        self.result(f"broke the lock of {lock.holder} on {lock.uri}", _described(lock), json=json)


def _row(lock: ResourceLock) -> tuple[object, ...]:
    return lock.pk, shortened(lock.uri, 60), lock.holder, lock.held_since, lock.expires_at


def _described(lock: ResourceLock) -> dict[str, object]:
    same = ("uri", "holder", "run_id", "held_since", "expires_at")
    return {"id": lock.pk, **{name: getattr(lock, name) for name in same}}
