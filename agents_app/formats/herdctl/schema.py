"""The documents of herdctl: fields, types and defaults of herdctl.yaml and of agent files; pure."""

import re
from typing import Any

from agents_app.formats.herdctl.validate import (
    Anything,
    Choice,
    Count,
    Field,
    FieldRule,
    Fields,
    Flag,
    Items,
    Kind,
    Named,
    Number,
    OneOf,
    Tagged,
    Text,
    Url,
)

NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_-]*")
_REPOSITORY = re.compile(r"[a-zA-Z0-9_.-]+/[a-zA-Z0-9_.-]+")
_MEMORY = re.compile(r"[0-9]+(?:\.[0-9]+)?\s*[kmgtb]?", re.IGNORECASE)
_USER = _PORT = re.compile(r"[0-9]+(?::[0-9]+)?")

TEXT, FLAG, COUNT = Text(), Flag(), Count()
TEXTS = Items(TEXT)
VARIABLES = Named(TEXT)


def _required(kind: Kind) -> Field:
    return Field(kind, required=True)


def _default(kind: Kind, value: Any) -> Field:
    return Field(kind, default=value)


def _optional(*names: str, kind: Kind = TEXT) -> dict[str, Field]:
    return {name: Field(kind) for name in names}


# --- work sources ---------------------------------------------------------------------------

GITHUB_AUTH = Fields({"token_env": _default(TEXT, "GITHUB_TOKEN")})
_GITHUB_LABELS = Fields(
    {"ready": _default(TEXT, "ready"), "in_progress": _default(TEXT, "agent-working")}
)
GITHUB_WORK_SOURCE = Fields(
    {
        "type": _required(Choice(("github",))),
        "repo": _required(Text(_REPOSITORY, "'owner/repository'")),
        "labels": _default(_GITHUB_LABELS, {}),
        "exclude_labels": _default(TEXTS, []),
        "cleanup_on_failure": _default(FLAG, value=True),
        "cleanup_in_progress": Field(FLAG),
        "auth": _default(GITHUB_AUTH, {}),
    }
)
WORK_SOURCE_LABELS = Fields(_optional("ready", "in_progress"))
BASE_WORK_SOURCE = Fields(
    {
        "type": _required(Choice(("github",))),
        "labels": Field(WORK_SOURCE_LABELS),
        "cleanup_in_progress": Field(FLAG),
    }
)
WORK_SOURCE = OneOf((GITHUB_WORK_SOURCE, BASE_WORK_SOURCE), "a work source with `type: github`")

# --- containers -----------------------------------------------------------------------------


def _is_volume(text: str) -> bool:
    parts = text.split(":")
    return len(parts) == 2 or (len(parts) == 3 and parts[2] in {"ro", "rw"})


_SAFE_DOCKER = {
    "enabled": _default(FLAG, value=False),
    "ephemeral": _default(FLAG, value=True),
    "memory": _default(TEXT, "2g"),
    "cpu_shares": Field(COUNT),
    "max_containers": _default(COUNT, 5),
    "workspace_mode": _default(Choice(("rw", "ro")), "rw"),
    "tmpfs": Field(TEXTS),
    "pids_limit": Field(COUNT),
    "labels": Field(VARIABLES),
    "cpu_period": Field(COUNT),
    "cpu_quota": Field(COUNT),
}
_MEMORY_RULE = FieldRule("memory", lambda text: bool(_MEMORY.fullmatch(text)), "512m, 2g or 1024k")
_TMPFS_RULE = FieldRule(
    "tmpfs", lambda mounts: all(one.startswith("/") for one in mounts), "'/path' or '/path:options'"
)
AGENT_DOCKER = Fields(_SAFE_DOCKER, strict=True, rules=(_MEMORY_RULE, _TMPFS_RULE))
_FLEET_DOCKER = {
    **_SAFE_DOCKER,
    **_optional("image", "user", "base_image"),
    **_optional("volumes", "ports", kind=TEXTS),
    "network": _default(Choice(("none", "bridge", "host")), "bridge"),
    "env": Field(VARIABLES),
    "host_config": Field(Anything()),
}
# The order in which issues are listed.
_FLEET_DOCKER_ORDER = (
    *("enabled", "ephemeral", "image", "network", "memory", "cpu_shares", "user"),
    *("max_containers", "volumes", "workspace_mode", "env", "ports", "tmpfs", "pids_limit"),
    *("labels", "cpu_period", "cpu_quota", "base_image", "host_config"),
)
FLEET_DOCKER = Fields(
    {name: _FLEET_DOCKER[name] for name in _FLEET_DOCKER_ORDER},
    strict=True,
    rules=(
        _MEMORY_RULE,
        FieldRule("volumes", lambda all_of: all(map(_is_volume, all_of)), "'host:container[:ro]'"),
        FieldRule("user", lambda text: bool(_USER.fullmatch(text)), "'UID' or 'UID:GID'"),
        FieldRule("ports", lambda ports: all(map(_PORT.fullmatch, ports)), "'8080:80' or '3000'"),
        _TMPFS_RULE,
    ),
)

# --- parts of an agent ----------------------------------------------------------------------

INSTANCES = Fields({"max_concurrent": _default(COUNT, 1)})
SESSION = Fields({"max_turns": Field(COUNT), **_optional("timeout", "model")})
IDENTITY = Fields(_optional("name", "role", "personality"))
WORKING_DIRECTORY = Fields(
    {
        "root": _required(TEXT),
        "auto_clone": _default(FLAG, value=True),
        "clone_depth": _default(COUNT, 1),
        "default_branch": _default(TEXT, "main"),
    }
)
AGENT_WORKING_DIRECTORY = OneOf((TEXT, WORKING_DIRECTORY), "a path, or a table with `root`")
PERMISSION_MODE = Choice(
    ("default", "acceptEdits", "bypassPermissions", "plan", "delegate", "dontAsk")
)
MCP_SERVER = Fields(
    {
        **_optional("type", "command", "url"),
        "args": Field(TEXTS),
        **_optional("env", "headers", kind=VARIABLES),
        "timeout": Field(Number()),
        "alwaysLoad": Field(FLAG),
    }
)


def _with_cron(schedule: dict[str, Any]) -> dict[str, Any]:
    """`expression` is the old name of `cron`."""
    old = schedule.pop("expression", None)
    return schedule | {"cron": old} if old and not schedule.get("cron") else schedule


SCHEDULE = Fields(
    {
        "type": _required(Choice(("interval", "cron", "webhook", "chat"))),
        **_optional("interval", "cron", "expression", "prompt"),
        "work_source": Field(WORK_SOURCE),
        "outputToFile": Field(FLAG),
        "enabled": _default(FLAG, value=True),
        "resume_session": _default(FLAG, value=False),
    },
    finish=_with_cron,
)

# --- hooks ----------------------------------------------------------------------------------

_HOOK = {
    "name": Field(TEXT),
    "continue_on_error": _default(FLAG, value=True),
    "on_events": Field(Items(Choice(("completed", "failed", "timeout", "cancelled")))),
    "when": Field(TEXT),
}
_NON_EMPTY = Text(shortest=1)
HOOKS: dict[str, Fields] = {
    "shell": Fields(
        {
            **_HOOK,
            "type": _required(TEXT),
            "command": _required(_NON_EMPTY),
            "timeout": _default(COUNT, 30_000),
        }
    ),
    "webhook": Fields(
        {
            **_HOOK,
            "type": _required(TEXT),
            "url": _required(Url()),
            "method": _default(Choice(("POST", "PUT")), "POST"),
            "headers": Field(VARIABLES),
            "timeout": _default(COUNT, 10_000),
        }
    ),
    "discord": Fields(
        {
            **_HOOK,
            "type": _required(TEXT),
            "channel_id": _required(_NON_EMPTY),
            "bot_token_env": _required(_NON_EMPTY),
        }
    ),
    "slack": Fields(
        {
            **_HOOK,
            "type": _required(TEXT),
            "channel_id": _required(_NON_EMPTY),
            "bot_token_env": _default(_NON_EMPTY, "SLACK_BOT_TOKEN"),
        }
    ),
}
HOOK = Tagged("type", HOOKS)
AGENT_HOOKS = Fields(_optional("after_run", "on_error", kind=Items(HOOK)))
