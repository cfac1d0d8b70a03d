"""Types of credentials: their fields, and the variables and files that a run gets."""

import contextlib
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from agents_app.errors import Refused
from agents_app.redaction import SHORTEST_LINE, SHORTEST_SECRET, secret_parts
from agents_app.runners import PASSED_ON

DEFAULT_INSTANCE = "default"
VALUE = "value"
# The kernel accepts no single variable above 128 KiB.
MAX_VALUE_BYTES = 100_000
MAX_NAME_LENGTH = 64
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_NOT_IN_VARIABLES = re.compile(r"[^A-Z0-9_]")
_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_RESERVED_VARIABLES = frozenset({*PASSED_ON, "PATH", "PROMPT", "GATEWAY_URL", "TIMEOUT_SECONDS"})


@dataclass(frozen=True, slots=True)
class Name:
    """The name of a credential: `type` or `type:instance`."""

    type: str
    instance: str = DEFAULT_INSTANCE

    def __str__(self) -> str:
        return self.type if self.instance == DEFAULT_INSTANCE else f"{self.type}:{self.instance}"


@dataclass(frozen=True, slots=True)
class CredentialField:
    variables: tuple[str, ...]
    is_secret: bool = True
    is_needed: bool = True


@dataclass(frozen=True, slots=True)
class CredentialType:
    fields: Mapping[str, CredentialField]
    # Variables that contain the path of the file with the value, as `{path}`.
    file_variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SecretFile:
    name: str
    text: str = field(repr=False)
    variables: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ProvidedSecrets:
    """The variables, files and secret values that one credential adds to a run."""

    env: Mapping[str, str] = field(repr=False)
    files: tuple[SecretFile, ...]
    secrets: tuple[str, ...] = field(repr=False)


def _token(*variables: str) -> CredentialType:
    return CredentialType({VALUE: CredentialField(variables)})


def _optional(*variables: str) -> CredentialField:
    """A field that is no secret and may be missing."""
    return CredentialField(variables, is_secret=False, is_needed=False)


CREDENTIAL_TYPES: Mapping[str, CredentialType] = {
    "github_token": _token("GITHUB_TOKEN", "GH_TOKEN"),
    "github_app": CredentialType(
        {
            "app_id": CredentialField(("GITHUB_APP_ID",), is_secret=False),
            "installation_id": CredentialField(("GITHUB_APP_INSTALLATION_ID",), is_secret=False),
            "private_key": CredentialField(("GITHUB_APP_PRIVATE_KEY",)),
        }
    ),
    "gitlab_token": _token("GITLAB_TOKEN"),
    "jira_token": CredentialType(
        {
            "email": CredentialField(("JIRA_EMAIL",), is_secret=False, is_needed=False),
            "token": CredentialField(("JIRA_API_TOKEN",)),
        }
    ),
    "linear_oauth": CredentialType(
        {
            "client_id": _optional("LINEAR_CLIENT_ID"),
            "client_secret": CredentialField(("LINEAR_CLIENT_SECRET",)),
            "access_token": CredentialField(("LINEAR_ACCESS_TOKEN",)),
            "refresh_token": CredentialField(("LINEAR_REFRESH_TOKEN",), is_needed=False),
        }
    ),
    "reddit_oauth": CredentialType(
        {
            "client_id": _optional("REDDIT_CLIENT_ID"),
            "client_secret": CredentialField(("REDDIT_CLIENT_SECRET",)),
            "username": _optional("REDDIT_USERNAME"),
            "password": CredentialField(("REDDIT_PASSWORD",)),
            "user_agent": _optional("REDDIT_USER_AGENT"),
        }
    ),
    "discord_bot": CredentialType(
        {
            "application_id": _optional("DISCORD_APPLICATION_ID"),
            "public_key": _optional("DISCORD_PUBLIC_KEY"),
            "bot_token": CredentialField(("DISCORD_BOT_TOKEN",)),
        }
    ),
    "anthropic_key": _token("ANTHROPIC_API_KEY"),
    # Codex reads only the second one when it runs without a terminal.
    "openai_key": _token("OPENAI_API_KEY", "CODEX_API_KEY"),
    "gemini_key": _token("GEMINI_API_KEY"),
    "sentry_token": _token("SENTRY_AUTH_TOKEN"),
    "linear_token": _token("LINEAR_API_KEY"),
    "slack_bot_token": _token("SLACK_BOT_TOKEN"),
    "discord_token": _token("DISCORD_TOKEN", "DISCORD_BOT_TOKEN"),
    "npm_token": _token("NPM_TOKEN", "NODE_AUTH_TOKEN"),
    "aws": CredentialType(
        {
            "access_key_id": CredentialField(("AWS_ACCESS_KEY_ID",)),
            "secret_access_key": CredentialField(("AWS_SECRET_ACCESS_KEY",)),
            "session_token": CredentialField(("AWS_SESSION_TOKEN",), is_needed=False),
            "region": CredentialField(
                ("AWS_REGION", "AWS_DEFAULT_REGION"), is_secret=False, is_needed=False
            ),
        }
    ),
    "x_api": CredentialType(
        {
            "api_key": CredentialField(("X_API_KEY",)),
            "api_secret": CredentialField(("X_API_SECRET",)),
            "access_token": CredentialField(("X_ACCESS_TOKEN",), is_needed=False),
            "access_token_secret": CredentialField(("X_ACCESS_TOKEN_SECRET",), is_needed=False),
            "bearer_token": CredentialField(("X_BEARER_TOKEN",), is_needed=False),
        }
    ),
    "gcp_service_account": CredentialType(
        {VALUE: CredentialField(())}, {"GOOGLE_APPLICATION_CREDENTIALS": "{path}"}
    ),
    "kubeconfig": CredentialType({VALUE: CredentialField(())}, {"KUBECONFIG": "{path}"}),
    "git_ssh": CredentialType(
        {
            VALUE: CredentialField(()),
            "username": _optional("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"),
            "email": _optional("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"),
        },
        {
            "GIT_SSH_KEY_FILE": "{path}",
            # A run cannot be asked to confirm the key of a host.
            "GIT_SSH_COMMAND": "ssh -i {quoted} -o IdentitiesOnly=yes -o BatchMode=yes "
            "-o StrictHostKeyChecking=accept-new",
        },
    ),
}


# --- names ----------------------------------------------------------------------------------


def parse_name(text: str) -> Name:
    kind, colon, instance = text.partition(":")
    parts = (kind, instance) if colon else (kind,)
    if not all(_NAME.fullmatch(part) and len(part) <= MAX_NAME_LENGTH for part in parts):
        raise Refused(
            f"{text[:80]!r} is not a valid credential name: write 'type' or 'type:instance'"
        )
    return Name(*parts)


def type_of(kind: str) -> CredentialType:
    """The type; an unknown type is a single text in a variable of its name."""
    return CREDENTIAL_TYPES.get(kind) or _token(as_variable(kind))


def as_variable(name: str) -> str:
    variable = _NOT_IN_VARIABLES.sub("_", name.upper())
    return f"_{variable}" if variable[0].isdigit() else variable


def declared_variables(declared: Iterable[str]) -> frozenset[str]:
    """The variables that a run with these credentials gets, without those that name a file.

    Invalid names are left out."""
    found: set[str] = set()
    for text in declared:
        with contextlib.suppress(Refused):
            name = parse_name(text)
            for one in type_of(name.type).fields.values():
                found |= set(_variables(name, one.variables))
    return frozenset(found)


def credential_providing(variable: str) -> str | None:
    """The type of a credential with a single text that a run gets as this variable, or None."""
    for kind, known in CREDENTIAL_TYPES.items():
        if list(known.fields) == [VALUE] and variable in known.fields[VALUE].variables:
            return kind
    kind = variable.lower()
    reserved = variable in _RESERVED_VARIABLES or variable.startswith("DROVER_")
    if reserved or kind in CREDENTIAL_TYPES or len(kind) > MAX_NAME_LENGTH:
        return None
    return kind if _NAME.fullmatch(kind) and as_variable(kind) == variable else None


def referenced_variables(text: str) -> list[str]:
    """The names in `${NAME}` of a text."""
    return _REFERENCE.findall(text)


def with_variables(text: str, env: Mapping[str, str]) -> str:
    """The text with the values of `${NAME}`; Refused if a variable has no value."""

    def value(found: re.Match[str]) -> str:
        if found[1] not in env:
            raise Refused(
                f"the variable {found[1]} is not one of a credential of this agent, or the "
                "credential is not set"
            )
        return env[found[1]]

    return _REFERENCE.sub(value, text)


# --- values ---------------------------------------------------------------------------------


def checked_values(name: Name, values: Mapping[str, str]) -> dict[str, str]:
    """The values to store; refuses values that a run cannot get or that cannot be redacted."""
    variable = as_variable(name.type)
    if variable in _RESERVED_VARIABLES or variable.startswith("DROVER_"):
        raise Refused(f"{name}: the variable {variable} is reserved; choose another type")
    fields = type_of(name.type).fields
    if unknown := sorted(values.keys() - fields.keys()):
        raise Refused(f"{name} has no field {unknown[0]!r}; its fields are {', '.join(fields)}")
    given = {key: normalized_value(text) for key, text in values.items() if text.strip()}
    if missing := [key for key, one in fields.items() if one.is_needed and key not in given]:
        raise Refused(f"{name}: {', '.join(missing)} is missing or empty")
    for key, text in given.items():
        _check(f"{name}" if key == VALUE else f"{name}: {key}", text, fields[key])
    return given


def normalized_value(text: str) -> str:
    """One line without a newline; several lines with one at the end, which programs require."""
    line = text.strip()
    if "\n" not in line:
        return line
    return "\n".join(text.strip("\r\n").splitlines()) + "\n"


def _check(what: str, text: str, of: CredentialField) -> None:
    if "\0" in text or len(text.encode(errors="replace")) > MAX_VALUE_BYTES:
        raise Refused(f"{what}: must be text of at most {MAX_VALUE_BYTES} bytes without NUL")
    if not of.is_secret:
        return
    if "\n" in text and not secret_parts(text):
        raise Refused(
            f"{what}: one of the lines must have at least {SHORTEST_LINE} characters, or the value "
            f"of a setting at least {SHORTEST_SECRET}, because a shorter text cannot be redacted "
            "from output"
        )
    if "\n" not in text and len(text) < SHORTEST_SECRET:
        raise Refused(
            f"{what}: must have at least {SHORTEST_SECRET} characters, because a shorter value "
            "cannot be redacted from output"
        )


# --- variables and files of a run -----------------------------------------------------------


def provided_secrets(name: Name, values: Mapping[str, str]) -> ProvidedSecrets:
    kind = type_of(name.type)
    env = {
        variable: values[key]
        for key, one in kind.fields.items()
        if key in values
        for variable in _variables(name, one.variables)
    }
    secrets = tuple(text for key, text in values.items() if kind.fields[key].is_secret)
    return ProvidedSecrets(env, tuple(_files(name, kind, values)), secrets)


def _files(name: Name, kind: CredentialType, values: Mapping[str, str]) -> Iterable[SecretFile]:
    text = values.get(VALUE, "")
    wanted = dict(kind.file_variables)
    if not wanted and "\n" in text:
        wanted = {f"{as_variable(name.type)}_FILE": "{path}"}
    if wanted:
        named = {v: said for one, said in wanted.items() for v in _variables(name, (one,))}
        yield SecretFile(f"{name.type}.{name.instance}", text, named)


def _variables(name: Name, plain: tuple[str, ...]) -> tuple[str, ...]:
    """The variables; an instance also has variables with its name, for agents with several."""
    if name.instance == DEFAULT_INSTANCE:
        return plain
    return *plain, *(f"{variable}_{as_variable(name.instance)}" for variable in plain)


def resolved_file_variables(variables: Mapping[str, str], path: Path) -> dict[str, str]:
    quoted = shlex.quote(str(path))
    return {name: said.format(path=path, quoted=quoted) for name, said in variables.items()}
