"""Sets, removes and finds credentials; changes are recorded in the journal without the secret."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from agents_app.conf import PROGRAM
from agents_app.database import in_transaction
from agents_app.errors import NotFound
from agents_app.events import journal
from agents_app.models import Credential, Tenant
from agents_app.secrets.sealing import BrokenSeal, reload_keys, seal
from agents_app.secrets.store import decrypted_values, name_of, sealed_name
from agents_app.secrets.types import Name, checked_values, parse_name

CredentialImport = Literal["created", "replaced", "unchanged", "kept"]
# The beginning of `changed_by` of a credential that an import has set.
_IMPORT = "import by "


def set_credential(
    tenant: Tenant, name: Name, values: Mapping[str, str], by: str, now: datetime
) -> bool:
    """Create or replace a credential; running runs keep the old values. True if it is new."""
    text = json.dumps(checked_values(name, values))
    keys = reload_keys()
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
        entry = journal.JournalEntry("credential.set", now, tenant.pk, detail=detail, actor=by)
        journal.record(entry)
        return is_new

    return in_transaction(change)


def import_credential(
    tenant: Tenant,
    name: Name,
    values: Mapping[str, str],
    by: str,
    now: datetime,
    *,
    dry_run: bool,
) -> CredentialImport:
    """Set a credential that is new, or that an import has set with other values.

    One that a person has set since is left as it is."""
    wanted = checked_values(name, values)
    stored = tenant.credentials.filter(type=name.type, instance=name.instance).first()
    if stored and _has_values(stored, wanted):
        return "unchanged"
    if stored and not stored.changed_by.startswith(_IMPORT):
        return "kept"
    if not dry_run:
        set_credential(tenant, name, wanted, f"{_IMPORT}{by}", now)
    return "replaced" if stored else "created"


def _has_values(stored: Credential, values: Mapping[str, str]) -> bool:
    """Whether the row has these values; a row that no key decrypts has others."""
    try:
        return decrypted_values(stored) == values
    except BrokenSeal:
        return False


def remove_credential(credential: Credential, by: str, now: datetime) -> bool:
    rows = Credential.objects.filter(pk=credential.pk)

    def change() -> bool:
        removed = rows.delete()[0] == 1
        if removed:
            detail = f"{by}: {name_of(credential)}"
            entry = journal.JournalEntry(
                "credential.removed", now, credential.tenant_id, detail=detail, actor=by
            )
            journal.record(entry)
        return removed

    return in_transaction(change)


def find_credential(tenant: Tenant, text: str) -> Credential:
    name = parse_name(text)
    found = tenant.credentials.filter(type=name.type, instance=name.instance).first()
    if found is None:
        raise NotFound(f"there is no credential {name} ({PROGRAM} credential list shows them)")
    return found
