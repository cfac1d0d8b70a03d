"""What people do to credentials; each act is noted in the journal, and none shows a secret."""

import json
from collections.abc import Mapping
from datetime import datetime

from agents_app.database import in_transaction
from agents_app.errors import NotFound
from agents_app.events import journal
from agents_app.models import Credential, Tenant
from agents_app.secrets.sealing import keys_again, seal
from agents_app.secrets.store import name_of, sealed_name
from agents_app.secrets.types import Name, checked, parse_name


def set_credential(
    tenant: Tenant, name: Name, values: Mapping[str, str], by: str, now: datetime
) -> bool:
    """New, or in the place of the old one; runs that have begun keep what they were given."""
    text = json.dumps(checked(name, values))
    keys = keys_again()
    sealed = seal(keys, tenant.pk, sealed_name(name), text)
    changed = {"sealed": sealed, "key_id": keys.first_id, "changed_at": now, "changed_by": by}

    def change() -> bool:
        _, is_new = tenant.credentials.update_or_create(
            type=name.type,
            instance=name.instance,
            defaults=changed,
            create_defaults=changed | {"created_at": now},
        )
        detail = f"{by}: {name}{'' if is_new else ' (replaced)'}"
        journal.record(journal.JournalEntry("credential.set", now, tenant.pk, detail=detail))
        return is_new

    return in_transaction(change)


def remove_credential(credential: Credential, by: str, now: datetime) -> bool:
    rows = Credential.objects.filter(pk=credential.pk)

    def change() -> bool:
        removed = rows.delete()[0] == 1
        if removed:
            detail = f"{by}: {name_of(credential)}"
            entry = journal.JournalEntry(
                "credential.removed", now, credential.tenant_id, detail=detail
            )
            journal.record(entry)
        return removed

    return in_transaction(change)


def find_credential(tenant: Tenant, text: str) -> Credential:
    name = parse_name(text)
    found = tenant.credentials.filter(type=name.type, instance=name.instance).first()
    if found is None:
        raise NotFound(f"there is no credential {name} (manage.py credential list shows them)")
    return found
