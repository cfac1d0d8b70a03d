"""Types of the values in project files and their validation."""

import re
import shlex
from collections.abc import Collection
from typing import Annotated, Any, Literal

from annotated_types import Ge, Le, Len
from pydantic import AfterValidator, BeforeValidator, PlainValidator, Strict

from agents_app.errors import TriggerParseError
from agents_app.names import closest
from agents_app.notifications import EVENTS, Blocked, read_target
from agents_app.triggers import parse_duration, zone

MAX_SECONDS = 366 * 86_400
_USER = re.compile(r"[a-z_][a-z0-9_-]{0,31}")
_MEMORY = re.compile(r"[1-9][0-9]{0,14}[bkmg]?", re.IGNORECASE)
# Not `host`: it would give a container the network of the machine.
_NETWORK = re.compile(r"(?!host$)[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_CREDENTIAL = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(?::[A-Za-z0-9_][A-Za-z0-9_.-]*)?")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET_REF = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]*|file:[^\s:][^:\n]*")
# Must not begin with a hyphen: it becomes a command line argument.
_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/@\[\]-]{0,199}|")
_REFERENCE = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
OWN_HEADERS = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "accept-encoding", "user-agent"}
)
_CHANNEL = re.compile(r"[A-Za-z0-9_-]{0,64}")
_DOT_PATH = re.compile(r"|[^\s.]+(?:\.[^\s.]+)*")
WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")


def seconds(value: Any) -> float:
    """A duration in seconds: a number, or a text with a unit."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError("must be seconds (900) or a duration with a unit (15m, 1.5h)")
    try:
        span = parse_duration(value).total_seconds() if isinstance(value, str) else float(value)
    except TriggerParseError as error:
        raise ValueError(error.reason) from None
    if not 0 < span <= MAX_SECONDS:
        raise ValueError(f"must be more than 0 and at most {MAX_SECONDS} seconds (366 days)")
    return span


def argv(value: Any) -> tuple[str, ...]:
    """A command as a list of arguments; a text is split as a shell would, without a shell."""
    if isinstance(value, str):
        return _non_empty(_shell_words(value))
    if not isinstance(value, list | tuple):
        raise ValueError('must be a list (["./run.sh", "-v"]) or a text ("./run.sh -v")')
    return _non_empty([_argument(item, number) for number, item in enumerate(value, 1)])


def _shell_words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise ValueError(f"unbalanced quotes: {str(error).lower()}") from None


def _non_empty(words: list[str]) -> tuple[str, ...]:
    if not words or not words[0].strip():
        raise ValueError("is empty; leave the field out to use the project's command")
    return tuple(words)


def _argument(item: Any, number: int) -> str:
    if isinstance(item, bool) or not isinstance(item, str | int):
        raise ValueError(f"argument {number} must be text, not {item!r}; put it in quotes")
    return str(item)


def as_list(value: Any) -> Any:
    """A single text counts as a list of one."""
    return [value] if isinstance(value, str) else value


def split_words(value: Any) -> Any:
    return value.split() if isinstance(value, str) else value


def one_line(text: str) -> str:
    return " ".join(text.split())


def absolute_path(text: str) -> str:
    if not text.startswith(("/", "~/")) or "\0" in text:
        raise ValueError(f"must be an absolute path, or begin with ~/, not {text[:60]!r}")
    return text


def zone_name(text: str) -> str:
    try:
        zone(text)
    except TriggerParseError as error:
        raise ValueError(error.reason) from None
    return text


def variable_name(name: str) -> str:
    if not _VARIABLE.fullmatch(name):
        raise ValueError("is not a valid variable name; use letters, digits and _")
    if name.startswith("DROVER_"):
        raise ValueError("names that begin with DROVER_ are reserved; choose another name")
    return name


def variable_text(value: Any) -> str:
    """Numbers and booleans of YAML become text."""
    if isinstance(value, bool):
        return str(value).lower()
    # The message does not repeat the value: it may be a secret in the wrong place.
    if not isinstance(value, str | int | float):
        raise ValueError("must be a text or a number")
    return str(value)


def secret_ref(text: str) -> str:
    # The message does not repeat the value: it may be the secret itself.
    if not _SECRET_REF.fullmatch(text):
        raise ValueError("must be a reference, 'env:NAME' or 'file:path', not the secret itself")
    return text


def callback_url(text: str) -> str:
    """A URL, or a reference to a secret that is one; the host is checked at every call."""
    if _SECRET_REF.fullmatch(text):
        return text
    try:
        read_target(text)
    except Blocked as error:
        raise ValueError(f"is not an allowed URL: {error}") from None
    return text


def hook_url(text: str) -> str:
    """A URL, or a whole `${NAME}`: a part of a URL that is secret would be beside a known host."""
    if text and not _REFERENCE.fullmatch(text):
        if "${" in text:
            raise ValueError("only a whole URL may be a reference: ${NAME}")
        callback_url(text)
        if _SECRET_REF.fullmatch(text):
            raise ValueError("must be a URL, or ${NAME} of a variable of a declared credential")
    return text


def header_name(name: str) -> str:
    if not _HEADER.fullmatch(name):
        raise ValueError("is not a valid name of a header")
    if name.lower() in OWN_HEADERS:
        raise ValueError("this header is set by Drover; leave it out")
    return name


def relative_path(text: str) -> str:
    parts = text.split("/")
    if "\0" in text or any(part in ("", ".", "..") for part in parts):
        raise ValueError(f"must be a path below the working directory, not {text[:60]!r}")
    return text


def did_you_mean(text: str, known: Collection[str]) -> str:
    """The end of a message with the closest known value, or empty."""
    close = closest(text, known)
    return f"; did you mean {close!r}?" if close else ""


def filter_value(value: Any) -> str | tuple[str, ...]:
    if isinstance(value, list | tuple):
        return tuple(_filter_text(item) for item in value)
    return _filter_text(value)


def event_name(text: str) -> str:
    if text not in EVENTS:
        hint = did_you_mean(text, EVENTS)
        raise ValueError(f"must be one of {', '.join(EVENTS)}, not {text[:60]!r}{hint}")
    return text


def _filter_text(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError("must be a text or a list of texts")
    return str(value)


def _matching(pattern: re.Pattern[str], wanted: str) -> AfterValidator:
    def check(text: str) -> str:
        if not pattern.fullmatch(text):
            raise ValueError(f"must be {wanted}, not {text[:60]!r}")
        return text

    return AfterValidator(check)


Seconds = Annotated[float, BeforeValidator(seconds)]
Argv = Annotated[tuple[str, ...], BeforeValidator(argv)]
Texts = Annotated[tuple[str, ...], BeforeValidator(as_list)]
Paths = Annotated[
    tuple[Annotated[str, AfterValidator(absolute_path)], ...], BeforeValidator(as_list)
]
Words = Annotated[tuple[str, ...], BeforeValidator(split_words)]
Line = Annotated[str, AfterValidator(one_line), Len(0, 1024)]
Zone = Annotated[str, AfterValidator(zone_name)]
Variable = Annotated[str, AfterValidator(variable_name)]
VariableText = Annotated[str, BeforeValidator(variable_text)]
SecretRef = Annotated[str, AfterValidator(secret_ref)]
CallbackUrl = Annotated[str, AfterValidator(callback_url)]
EventName = Annotated[str, AfterValidator(event_name)]
Filter = Annotated[str | tuple[str, ...], PlainValidator(filter_value)]

Whole = Annotated[int, Strict(), Ge(0), Le(1_000_000)]
Positive = Annotated[int, Strict(), Ge(1), Le(1_000_000)]
Slots = Annotated[int, Strict(), Ge(0), Le(10_000)]
Few = Annotated[int, Strict(), Ge(0), Le(100)]
Port = Annotated[int, Strict(), Ge(0), Le(65_535)]
Cpus = Annotated[float, Ge(0.01), Le(1024)]
Tokens = Annotated[int, Strict(), Ge(1), Le(10**15)]
Dollars = Annotated[float, Ge(0.01), Le(10**9)]

UserName = Annotated[str, _matching(_USER, "a unix user name")]
Model = Annotated[str, _matching(_MODEL, "the name of a model")]
Memory = Annotated[str, _matching(_MEMORY, "an amount such as 512m or 4g")]
Network = Annotated[str, _matching(_NETWORK, "none, bridge or the name of your own network")]
ChannelId = Annotated[str, _matching(_CHANNEL, "the id of a channel")]
DotPath = Annotated[str, _matching(_DOT_PATH, "a path such as metadata.changed"), Len(0, 200)]
HeaderName = Annotated[str, AfterValidator(header_name)]
HookUrl = Annotated[str, AfterValidator(hook_url)]
HookEvents = Annotated[
    tuple[Literal["completed", "failed", "timeout", "cancelled"], ...], BeforeValidator(as_list)
]
RelativePath = Annotated[str, AfterValidator(relative_path)]
VariableOrNone = Annotated[str, AfterValidator(lambda name: name and variable_name(name))]
Credential = Annotated[str, _matching(_CREDENTIAL, "'type' or 'type:instance'")]
Word = Annotated[str, _matching(WORD, "one word of letters, digits, '.', '_' and '-'")]
