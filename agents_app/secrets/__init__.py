"""Credentials: sealed at rest, opened for the run that declares them.

Belongs here: storing, sealing and resolving secret values.
Does not belong here: removing secrets from output (redaction).
"""

from agents_app.secrets import credentials, sealing
from agents_app.secrets.credentials import find_credential, remove_credential, set_credential
from agents_app.secrets.references import read_secret
from agents_app.secrets.resealing import Resealed, reseal_all
from agents_app.secrets.sealing import BrokenSeal, keys, keys_again, seal, unseal
from agents_app.secrets.store import (
    NO_SECRETS,
    Secrets,
    for_run,
    how_to_set,
    missing_of,
    name_of,
    redactor_for,
    redactor_of_tenant,
    value_of,
)
from agents_app.secrets.types import (
    CREDENTIAL_TYPES,
    DEFAULT_INSTANCE,
    VALUE,
    CredentialField,
    Name,
    checked,
    located,
    parse_name,
    type_of,
)

__all__ = [
    "CREDENTIAL_TYPES",
    "DEFAULT_INSTANCE",
    "NO_SECRETS",
    "VALUE",
    "BrokenSeal",
    "CredentialField",
    "Name",
    "Resealed",
    "Secrets",
    "checked",
    "credentials",
    "find_credential",
    "for_run",
    "how_to_set",
    "keys",
    "keys_again",
    "located",
    "missing_of",
    "name_of",
    "parse_name",
    "read_secret",
    "redactor_for",
    "redactor_of_tenant",
    "remove_credential",
    "reseal_all",
    "seal",
    "sealing",
    "set_credential",
    "type_of",
    "unseal",
    "value_of",
]
