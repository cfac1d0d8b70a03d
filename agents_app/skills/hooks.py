"""Reads the hooks with events of SKILL.md, and checks that each type has the fields it needs."""

from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any

from agents_app.secrets import declared_variables, referenced_variables
from agents_app.skills.document import KeyPath
from agents_app.skills.specs import AgentSpec, EventHookSpec
from agents_app.skills.tables import Layer, build_spec, file_fields, normalize_table

LISTS = ("after_run", "on_error")
BOT_TOKENS = {"slack": "SLACK_BOT_TOKEN", "discord": "DISCORD_BOT_TOKEN"}
MAX_REQUEST_SECONDS = 60
# The fields that only some types use; the others are common to all.
USED_BY = {
    "shell": ("command",),
    "webhook": ("url", "method", "headers"),
    "slack": ("url", "channel_id", "bot_token_env"),
    "discord": ("url", "channel_id", "bot_token_env"),
    "notify": ("message",),
}
_OF_SOME_TYPES = {name for names in USED_BY.values() for name in names}
_NEEDED = {"shell": "command", "webhook": "url"}
_DEFAULTS = {each.name: each.default for each in fields(EventHookSpec)}


def normalize_hooks(table: dict[str, Any], layer: Layer) -> dict[str, Any]:
    """The table of an agent with the field names of the spec in its hooks with events.

    A text in a list is short for a shell command. Values are not checked."""
    hooks = table.get("hooks")
    if not isinstance(hooks, dict):
        return table
    normalized = {
        name: [_hook(item, layer, ("hooks", name, number)) for number, item in enumerate(items)]
        for name in LISTS
        if isinstance(items := hooks.get(name), list)
    }
    return {**table, "hooks": {**hooks, **normalized}}


def _hook(item: Any, layer: Layer, at: KeyPath) -> Any:
    if isinstance(item, str):
        return {"type": "shell", "command": item}
    if not isinstance(item, dict):
        return item
    return normalize_table(item, file_fields(EventHookSpec), layer, at)


def check_hooks(agent: AgentSpec, layer: Layer) -> None:
    """Report hooks that lack a field, have one that their type does not use, or refer to a
    variable that no credential of the agent or of its hooks provides."""
    known = declared_variables((*agent.credentials, *agent.hooks.credentials))
    for name in LISTS:
        for number, hook in enumerate(getattr(agent.hooks, name)):
            _check_hook(hook, known, layer, ("hooks", name, number))


def is_valid_hook(
    table: dict[str, Any], credentials: Sequence[str], layer: Layer, at: KeyPath
) -> bool:
    """Whether a table with the field names of the spec is a hook; its errors are reported."""
    before = len(layer.problems.found)
    hook = build_spec(EventHookSpec, table, layer, at)
    if hook is not None:
        _check_hook(hook, declared_variables(credentials), layer, at)
    return len(layer.problems.found) == before


def _check_hook(hook: EventHookSpec, known: frozenset[str], layer: Layer, at: KeyPath) -> None:
    for field, problem in _problems(hook, known):
        layer.report((*at, *field), problem)


def _problems(hook: EventHookSpec, known: frozenset[str]) -> Iterator[tuple[KeyPath, str]]:
    used = USED_BY[hook.type]
    for name in sorted(_OF_SOME_TYPES - set(used)):
        if _is_given(hook, name):
            fields_of_type = ", ".join(used)
            yield (name,), f"a hook of type {hook.type!r} does not use it, but {fields_of_type}"
    needed = _NEEDED.get(hook.type)
    if needed and not getattr(hook, needed).strip():
        yield (needed,), f"is missing: a hook of type {hook.type!r} needs it"
    if hook.type in BOT_TOKENS and bool(hook.url) == bool(hook.channel_id):
        yield ("channel_id",), "give either `channel_id` for a bot or `url` of a webhook"
    if hook.type != "shell" and (hook.timeout_seconds or 0) > MAX_REQUEST_SECONDS:
        yield ("timeout",), f"must be at most {MAX_REQUEST_SECONDS} s for a request"
    yield from _unknown_variables(hook, known)


def _is_given(hook: EventHookSpec, name: str) -> bool:
    return bool(getattr(hook, name) != ({} if name == "headers" else _DEFAULTS[name]))


def _unknown_variables(hook: EventHookSpec, known: frozenset[str]) -> Iterator[tuple[KeyPath, str]]:
    texts: dict[KeyPath, str] = {("url",): hook.url}
    texts |= {("headers", name): value for name, value in hook.headers.items()}
    for at, text in texts.items():
        for variable in referenced_variables(text):
            if variable not in known:
                yield at, _undeclared(variable)
    if hook.type in BOT_TOKENS and hook.channel_id:
        token = hook.bot_token_env or BOT_TOKENS[hook.type]
        if token not in known:
            yield ("bot_token_env",), _undeclared(token)


def _undeclared(variable: str) -> str:
    return (
        f"{variable} is not a variable of a credential of this agent: add the credential to "
        "`credentials`, or to `hooks.credentials` if the program must not have it"
    )
