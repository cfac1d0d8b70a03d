"""What a credential of each type becomes in a run: variables and files; nothing is sealed here."""

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
# The kernel takes no single variable above 128 KiB.
LONGEST_VALUE = 100_000
LONGEST_NAME = 64
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_NOT_IN_VARIABLES = re.compile(r"[^A-Z0-9_]")
_OURS = frozenset({*PASSED_ON, "PATH", "PROMPT", "GATEWAY_URL", "TIMEOUT_SECONDS"})


@dataclass(frozen=True, slots=True)
class Name:
    """As agents write it: `type` or `type:instance`."""

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
    # Variables that say where the file with the value is; `{path}` stands for it.
    file_variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SecretFile:
    name: str
    text: str = field(repr=False)
    variables: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Given:
    """What one credential puts into a run."""

    env: Mapping[str, str] = field(repr=False)
    files: tuple[SecretFile, ...]
    secrets: tuple[str, ...] = field(repr=False)


def _token(*variables: str) -> CredentialType:
    return CredentialType({VALUE: CredentialField(variables)})


CREDENTIAL_TYPES: Mapping[str, CredentialType] = {
    "github_token": _token("GITHUB_TOKEN", "GH_TOKEN"),
    "gitlab_token": _token("GITLAB_TOKEN"),
    "anthropic_key": _token("ANTHROPIC_API_KEY"),
    "openai_key": _token("OPENAI_API_KEY"),
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
        {VALUE: CredentialField(())},
        {
            "GIT_SSH_KEY_FILE": "{path}",
            # Nobody is there to be asked whether a host's key is the right one.
            "GIT_SSH_COMMAND": "ssh -i {quoted} -o IdentitiesOnly=yes -o BatchMode=yes "
            "-o StrictHostKeyChecking=accept-new",
        },
    ),
}


# --- names ----------------------------------------------------------------------------------


def parse_name(text: str) -> Name:
    kind, colon, instance = text.partition(":")
    parts = (kind, instance) if colon else (kind,)
    if not all(_NAME.fullmatch(part) and len(part) <= LONGEST_NAME for part in parts):
        raise Refused(f"{text[:80]!r} is no credential: write 'type' or 'type:instance'")
    return Name(*parts)


def type_of(kind: str) -> CredentialType:
    """Any other type is a text in a variable of its name."""
    return CREDENTIAL_TYPES.get(kind) or _token(as_variable(kind))


def as_variable(name: str) -> str:
    variable = _NOT_IN_VARIABLES.sub("_", name.upper())
    return f"_{variable}" if variable[0].isdigit() else variable


# --- values ---------------------------------------------------------------------------------


def checked(name: Name, values: Mapping[str, str]) -> dict[str, str]:
    """As they are sealed; refuses what a run could not be given, or what could not be redacted."""
    variable = as_variable(name.type)
    if variable in _OURS or variable.startswith("DROVER_"):
        raise Refused(f"{name}: the variable {variable} is Drover's; choose another type")
    fields = type_of(name.type).fields
    if unknown := sorted(values.keys() - fields.keys()):
        raise Refused(f"{name} has no field {unknown[0]!r}; it has {', '.join(fields)}")
    given = {key: tidied(text) for key, text in values.items() if text.strip()}
    if missing := [key for key, one in fields.items() if one.is_needed and key not in given]:
        raise Refused(f"{name}: {', '.join(missing)} is missing or empty")
    for key, text in given.items():
        _check(f"{name}" if key == VALUE else f"{name}: {key}", text, fields[key])
    return given


def tidied(text: str) -> str:
    """One line without the end that files have; several with one, which programs insist on."""
    line = text.strip()
    if "\n" not in line:
        return line
    return "\n".join(text.strip("\r\n").splitlines()) + "\n"


def _check(what: str, text: str, of: CredentialField) -> None:
    if "\0" in text or len(text.encode(errors="replace")) > LONGEST_VALUE:
        raise Refused(f"{what}: it must be text of at most {LONGEST_VALUE} bytes, without NUL")
    if not of.is_secret:
        return
    if "\n" in text and not secret_parts(text):
        raise Refused(
            f"{what}: of several lines one must have {SHORTEST_LINE} characters, or it could "
            "not be told apart from other output, and would be shown there"
        )
    if "\n" not in text and len(text) < SHORTEST_SECRET:
        raise Refused(
            f"{what}: at least {SHORTEST_SECRET} characters: a shorter one could not be told apart "
            "from other output, and would be shown there"
        )


# --- what a run gets ------------------------------------------------------------------------


def given(name: Name, values: Mapping[str, str]) -> Given:
    kind = type_of(name.type)
    env = {
        variable: values[key]
        for key, one in kind.fields.items()
        if key in values
        for variable in _variables(name, one.variables)
    }
    secrets = tuple(text for key, text in values.items() if kind.fields[key].is_secret)
    return Given(env, tuple(_files(name, kind, values)), secrets)


def _files(name: Name, kind: CredentialType, values: Mapping[str, str]) -> Iterable[SecretFile]:
    text = values.get(VALUE, "")
    wanted = dict(kind.file_variables)
    if not wanted and "\n" in text:
        wanted = {f"{as_variable(name.type)}_FILE": "{path}"}
    if wanted:
        named = {v: said for one, said in wanted.items() for v in _variables(name, (one,))}
        yield SecretFile(f"{name.type}.{name.instance}", text, named)


def _variables(name: Name, plain: tuple[str, ...]) -> tuple[str, ...]:
    """An instance has names of its own as well, for agents that are given several."""
    if name.instance == DEFAULT_INSTANCE:
        return plain
    return *plain, *(f"{variable}_{as_variable(name.instance)}" for variable in plain)


def located(variables: Mapping[str, str], path: Path) -> dict[str, str]:
    quoted = shlex.quote(str(path))
    return {name: said.format(path=path, quoted=quoted) for name, said in variables.items()}
