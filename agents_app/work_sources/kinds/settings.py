"""Types of the settings of work sources, as files have them."""

import re
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import urlsplit

from annotated_types import Ge, Le, Len
from pydantic import AfterValidator, BeforeValidator, Strict

_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9._-]{1,100}")
_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,49}")
_AUTH = re.compile(
    r"[A-Za-z0-9_][A-Za-z0-9_.-]*(?::[A-Za-z0-9_][A-Za-z0-9_.-]*)?"
    r"|env:[A-Za-z_][A-Za-z0-9_]*|file:[^\s:][^:\n]*"
)


def repository(text: str) -> str:
    if not _REPOSITORY.fullmatch(text) or text.endswith(("/.", "/..")):
        raise ValueError(f"must be 'owner/name', not {text[:60]!r}")
    return text


def short_key(text: str) -> str:
    if not _KEY.fullmatch(text):
        raise ValueError(f"must be a key such as ENG, not {text[:60]!r}")
    return text


def label_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def auth_reference(value: Any) -> Any:
    """A credential or a reference to a secret; herdctl writes `{token_env: NAME}`."""
    if isinstance(value, dict) and set(value) == {"token_env"}:
        value = f"env:{value['token_env']}"
    if not isinstance(value, str) or not _AUTH.fullmatch(value):
        # The message does not repeat the value: it may be the secret itself.
        raise ValueError(
            "must be a credential ('type' or 'type:instance'), 'env:NAME' or 'file:path'"
        )
    return value


def server_url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in {"http", "https"} or not parts.hostname or "@" in parts.netloc:
        raise ValueError("must be a URL such as https://api.github.com, without a user or password")
    return text.rstrip("/")


Repository = Annotated[str, AfterValidator(repository)]
ShortKey = Annotated[str, AfterValidator(short_key)]
# An empty label would select every item.
Label = Annotated[str, Len(1, 200)]
LabelList = Annotated[tuple[Label, ...], BeforeValidator(label_list)]
Auth = Annotated[str, BeforeValidator(auth_reference)]
ServerUrl = Annotated[str, AfterValidator(server_url)]
Attempts = Annotated[int, Strict(), Ge(1), Le(100)]
FolderPath = Annotated[str, Len(1, 1000)]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceLabels:
    """The label of items that agents may work on, and the label of claimed items."""

    ready: Label = "ready"
    in_progress: Label = "agent-working"


EXCLUDED = ("blocked", "wip")
