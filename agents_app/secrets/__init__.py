"""Credentials: encrypted at rest, decrypted for the run that declares them.

Belongs here: storing, encrypting and resolving secret values.
Does not belong here: removing secrets from output (redaction).
"""

from agents_app.secrets import credentials, sealing
from agents_app.secrets.credentials import (
    CredentialImport,
    find_credential,
    import_credential,
    remove_credential,
    set_credential,
)
from agents_app.secrets.key_rotation import Resealed, reseal_all
from agents_app.secrets.sealing import BrokenSeal, keys, reload_keys, seal, unseal
from agents_app.secrets.store import (
    NO_SECRETS,
    Secrets,
    for_hooks,
    for_run,
    how_to_set,
    missing_of,
    name_of,
    read_secret,
    redactor_for,
    redactor_of_tenant,
    value_of,
    values_of,
)
from agents_app.secrets.types import (
    CREDENTIAL_TYPES,
    DEFAULT_INSTANCE,
    VALUE,
    CredentialField,
    Name,
    checked_values,
    credential_providing,
    declared_variables,
    parse_name,
    referenced_variables,
    resolved_file_variables,
    type_of,
    with_variables,
)

__all__ = [
    "CREDENTIAL_TYPES",
    "DEFAULT_INSTANCE",
    "NO_SECRETS",
    "VALUE",
    "BrokenSeal",
    "CredentialField",
    "CredentialImport",
    "Name",
    "Resealed",
    "Secrets",
    "checked_values",
    "credential_providing",
    "credentials",
    "declared_variables",
    "find_credential",
    "for_hooks",
    "for_run",
    "how_to_set",
    "import_credential",
    "keys",
    "missing_of",
    "name_of",
    "parse_name",
    "read_secret",
    "redactor_for",
    "redactor_of_tenant",
    "referenced_variables",
    "reload_keys",
    "remove_credential",
    "reseal_all",
    "resolved_file_variables",
    "seal",
    "sealing",
    "set_credential",
    "type_of",
    "unseal",
    "value_of",
    "values_of",
    "with_variables",
]
