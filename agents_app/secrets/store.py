"""Reads stored credentials and provides those that a run declares."""

import contextlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from agents_app.conf import PROGRAM
from agents_app.errors import DroverError, Refused
from agents_app.models import DEFAULT_TENANT, Credential, Tenant
from agents_app.redaction import Redactor
from agents_app.secrets.references import read_reference
from agents_app.secrets.sealing import unseal_stored
from agents_app.secrets.types import (
    VALUE,
    Name,
    ProvidedSecrets,
    SecretFile,
    parse_name,
    provided_secrets,
)

RUN_TOKEN = "run token"  # noqa: S105


class CredentialMissing(Refused):
    """An agent declares a credential that is not set."""

    code = "credential_missing"


@dataclass(frozen=True, slots=True)
class Secrets:
    """Variables and files for a run, and the values to redact from its output."""

    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    files: tuple[SecretFile, ...] = ()
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)

    def redactor(self, token: str) -> Redactor:
        return Redactor({RUN_TOKEN: (token,), **self.values})


NO_SECRETS = Secrets()


def for_run(tenant_id: int, declared: Sequence[str]) -> Secrets:
    """Decrypt the declared credentials; raises CredentialMissing if one is not set."""
    if not declared:
        return NO_SECRETS
    wanted = [parse_name(text) for text in declared]
    stored = _stored(tenant_id, wanted)
    if missing := [name for name in wanted if name not in stored]:
        raise _missing(tenant_id, missing)
    return _combined(
        {name: provided_secrets(name, decrypted_values(stored[name])) for name in wanted}
    )


def redactor_for(tenant_id: int, declared: Sequence[str], token: str) -> Redactor:
    """A redactor for the status and the result of a running run.

    Credentials that were removed since its start are not redacted: their values are gone.
    """
    wanted = [parse_name(text) for text in declared]
    stored = _stored(tenant_id, wanted) if wanted else {}
    found = {
        name: provided_secrets(name, decrypted_values(stored[name]))
        for name in wanted
        if name in stored
    }
    return _combined(found).redactor(token)


def for_hooks(tenant_id: int, declared: Sequence[str]) -> Secrets:
    """Decrypt the credentials of hooks; those that are not set or not readable are left out."""
    wanted = [parse_name(text) for text in declared]
    stored = _stored(tenant_id, wanted) if wanted else {}
    found = {}
    for name in wanted:
        with contextlib.suppress(DroverError, KeyError):
            found[name] = provided_secrets(name, decrypted_values(stored[name]))
    return _combined(found)


def redactor_of_tenant(tenant_id: int) -> Redactor:
    """A redactor with all credentials of the tenant, for commands that are given none.

    Credentials that cannot be decrypted are left out.
    """
    found = {}
    for row in Credential.objects.filter(tenant_id=tenant_id):
        with contextlib.suppress(DroverError):
            found[name_of(row)] = provided_secrets(name_of(row), decrypted_values(row))
    return Redactor(_combined(found).values)


def name_of(credential: Credential) -> Name:
    return Name(credential.type, credential.instance)


def missing_of(tenant_id: int, declared: Iterable[str]) -> list[Name]:
    """The declared credentials that are not set; decrypts nothing."""
    wanted = [parse_name(text) for text in declared]
    stored = _stored(tenant_id, wanted)
    return [name for name in wanted if name not in stored]


def how_to_set(name: Name, tenant: str = "default") -> str:
    option = "" if tenant == "default" else f" --tenant {tenant}"
    return f"{PROGRAM} credential set {name}{option}"


def decrypted_values(credential: Credential) -> dict[str, str]:
    name = sealed_name(name_of(credential))
    values: dict[str, str] = json.loads(
        unseal_stored(credential.sealed, credential.tenant_id, name)
    )
    return values


def _combined(all_given: Mapping[Name, ProvidedSecrets]) -> Secrets:
    """Combine credentials; of two with the same variable, the first declared one wins."""
    env: dict[str, str] = {}
    for one in all_given.values():
        env = {**one.env, **env}
    files = tuple(file for one in all_given.values() for file in one.files)
    return Secrets(env, files, {str(name): one.secrets for name, one in all_given.items()})


def _stored(tenant_id: int, wanted: Iterable[Name]) -> dict[Name, Credential]:
    types = {name.type for name in wanted}
    rows = Credential.objects.filter(tenant_id=tenant_id, type__in=types)
    return {name_of(row): row for row in rows}


def _missing(tenant_id: int, names: Sequence[Name]) -> CredentialMissing:
    tenant = Tenant.objects.values_list("name", flat=True).get(pk=tenant_id)
    commands = "; ".join(f"{name}: {how_to_set(name, tenant)}" for name in names)
    return CredentialMissing(f"credential_missing: not set: {commands}")


def sealed_name(name: Name) -> str:
    return f"{name.type}:{name.instance}"


def values_of(tenant_id: int, text: str) -> dict[str, str]:
    """The fields of a credential; empty if it is not set."""
    name = parse_name(text)
    stored = _stored(tenant_id, [name])
    return decrypted_values(stored[name]) if name in stored else {}


def value_of(tenant_id: int, text: str) -> str:
    """The value of a credential with a single text; empty if it is not set."""
    return values_of(tenant_id, text).get(VALUE, "")


def read_secret(ref: str, tenant: Tenant) -> str:
    """The secret of `env:NAME` or `file:path` below the tenant's project; empty if there is none.

    The variables of the installation belong to the default tenant."""
    is_default = tenant.name == DEFAULT_TENANT
    return read_reference(ref, tenant.project_directory, is_trusted=is_default)
