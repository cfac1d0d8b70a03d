"""Credentials as they are kept, and what one run is given of them: opened for nobody else."""

import contextlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from agents_app.errors import DroverError, Refused
from agents_app.models import Credential, Tenant
from agents_app.redaction import Redactor
from agents_app.secrets.sealing import unseal_kept
from agents_app.secrets.types import VALUE, Given, Name, SecretFile, given, parse_name

RUN_TOKEN = "run token"  # noqa: S105


class CredentialMissing(Refused):
    """An agent declares a credential that nobody has set."""

    code = "credential_missing"


@dataclass(frozen=True, slots=True)
class Secrets:
    """What a run is given, and what must not be seen of it."""

    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    files: tuple[SecretFile, ...] = ()
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)

    def redactor(self, token: str) -> Redactor:
        return Redactor({RUN_TOKEN: (token,), **self.values})


NO_SECRETS = Secrets()


def for_run(tenant_id: int, declared: Sequence[str]) -> Secrets:
    """Opened for this run, and kept nowhere else."""
    if not declared:
        return NO_SECRETS
    wanted = [parse_name(text) for text in declared]
    kept = _kept(tenant_id, wanted)
    if missing := [name for name in wanted if name not in kept]:
        raise _missing(tenant_id, missing)
    return _gathered({name: given(name, opened(kept[name])) for name in wanted})


def redactor_for(tenant_id: int, declared: Sequence[str], token: str) -> Redactor:
    """For what a live run says elsewhere than in its output: its status, what it returns.

    Without those that were removed since it began: nobody knows them any more."""
    wanted = [parse_name(text) for text in declared]
    kept = _kept(tenant_id, wanted) if wanted else {}
    found = {name: given(name, opened(kept[name])) for name in wanted if name in kept}
    return _gathered(found).redactor(token)


def redactor_of_tenant(tenant_id: int) -> Redactor:
    """For what is run in the project's name, and given none of them: it may find one all the same.

    One that cannot be opened cannot be found by anybody else either."""
    found = {}
    for row in Credential.objects.filter(tenant_id=tenant_id):
        with contextlib.suppress(DroverError):
            found[name_of(row)] = given(name_of(row), opened(row))
    return Redactor(_gathered(found).values)


def name_of(credential: Credential) -> Name:
    return Name(credential.type, credential.instance)


def missing_of(tenant_id: int, declared: Iterable[str]) -> list[Name]:
    """Those of them that nobody has set; opens nothing."""
    wanted = [parse_name(text) for text in declared]
    kept = _kept(tenant_id, wanted)
    return [name for name in wanted if name not in kept]


def how_to_set(name: Name, tenant: str = "default") -> str:
    whose = "" if tenant == "default" else f" --tenant {tenant}"
    return f"manage.py credential set {name}{whose}"


def opened(credential: Credential) -> dict[str, str]:
    name = sealed_name(name_of(credential))
    values: dict[str, str] = json.loads(unseal_kept(credential.sealed, credential.tenant_id, name))
    return values


def _gathered(all_given: Mapping[Name, Given]) -> Secrets:
    """Where two have a variable in common, the one that the agent names first has it."""
    env: dict[str, str] = {}
    for one in all_given.values():
        env = {**one.env, **env}
    files = tuple(file for one in all_given.values() for file in one.files)
    return Secrets(env, files, {str(name): one.secrets for name, one in all_given.items()})


def _kept(tenant_id: int, wanted: Iterable[Name]) -> dict[Name, Credential]:
    types = {name.type for name in wanted}
    rows = Credential.objects.filter(tenant_id=tenant_id, type__in=types)
    return {name_of(row): row for row in rows}


def _missing(tenant_id: int, names: Sequence[Name]) -> CredentialMissing:
    tenant = Tenant.objects.values_list("name", flat=True).get(pk=tenant_id)
    said = "; ".join(f"{name}: {how_to_set(name, tenant)}" for name in names)
    return CredentialMissing(f"credential_missing: nobody has set {said}")


def sealed_name(name: Name) -> str:
    return f"{name.type}:{name.instance}"


def value_of(tenant_id: int, text: str) -> str:
    """Of a credential that is a single text; empty if there is none of that name."""
    name = parse_name(text)
    kept = _kept(tenant_id, [name])
    return opened(kept[name]).get(VALUE, "") if name in kept else ""
