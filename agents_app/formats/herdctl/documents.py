"""The two documents of herdctl, an agent file and herdctl.yaml, and all schemas by name; pure."""

from agents_app.formats.herdctl.chat_schema import AGENT_CHAT, CHAT_SCHEMAS
from agents_app.formats.herdctl.schema import (
    AGENT_DOCKER,
    AGENT_HOOKS,
    AGENT_WORKING_DIRECTORY,
    BASE_WORK_SOURCE,
    COUNT,
    FLAG,
    FLEET_DOCKER,
    GITHUB_AUTH,
    GITHUB_WORK_SOURCE,
    HOOK,
    HOOKS,
    IDENTITY,
    INSTANCES,
    MCP_SERVER,
    NAME,
    PERMISSION_MODE,
    SCHEDULE,
    SESSION,
    TEXT,
    TEXTS,
    WORK_SOURCE,
    WORK_SOURCE_LABELS,
    WORKING_DIRECTORY,
)
from agents_app.formats.herdctl.validate import (
    Anything,
    Choice,
    Field,
    Fields,
    Items,
    Kind,
    Named,
    Text,
)

_NAME = Text(NAME, "letters, digits, '_' and '-', with a letter or digit first")
_OVERRIDES = Named(Anything())

# What `defaults` of a fleet and an agent have in common, but for `docker`.
_SHARED = {
    "work_source": Field(WORK_SOURCE),
    "instances": Field(INSTANCES),
    "working_directory": Field(AGENT_WORKING_DIRECTORY),
    "session": Field(SESSION),
    "model": Field(TEXT),
    "max_turns": Field(COUNT),
    "permission_mode": Field(PERMISSION_MODE),
    "tools": Field(TEXTS),
    "allowed_tools": Field(TEXTS),
    "denied_tools": Field(TEXTS),
    "mcp_servers": Field(Named(MCP_SERVER)),
    "plugins": Field(Items(Anything())),
}
_AGENT = {
    **_SHARED,
    "name": Field(_NAME, required=True),
    **{name: Field(TEXT) for name in ("description", "repo", "system_prompt", "default_prompt")},
    "identity": Field(IDENTITY),
    "schedules": Field(Named(SCHEDULE)),
    "chat": Field(AGENT_CHAT),
    "hooks": Field(AGENT_HOOKS),
    "metadata_file": Field(TEXT),
    "setting_sources": Field(Items(Choice(("user", "project", "local")))),
    "runtime": Field(Choice(("sdk", "cli"))),
}
# The order in which issues are listed.
_AGENT_ORDER = (
    *("name", "description", "working_directory", "repo", "identity", "system_prompt"),
    *("default_prompt", "work_source", "schedules", "session", "mcp_servers", "plugins", "chat"),
    *("hooks", "docker", "instances", "model", "max_turns", "permission_mode", "tools"),
    *("allowed_tools", "denied_tools", "metadata_file", "setting_sources", "runtime"),
)


def _agent(docker: Kind) -> Fields:
    fields = {**_AGENT, "docker": Field(docker)}
    return Fields({name: fields[name] for name in _AGENT_ORDER}, strict=True)


AGENT = _agent(AGENT_DOCKER)
# An agent with the defaults and overrides of its fleet, which may choose an image.
MERGED_AGENT = _agent(FLEET_DOCKER)

DEFAULTS = Fields({"docker": Field(FLEET_DOCKER), **_SHARED})
AGENT_REFERENCE = Fields({"path": Field(TEXT, required=True), "overrides": Field(_OVERRIDES)})
FLEET_REFERENCE = Fields(
    {"path": Field(TEXT, required=True), "name": Field(_NAME), "overrides": Field(_OVERRIDES)}
)
WEBHOOKS = Fields(
    {
        "enabled": Field(FLAG, default=False),
        "port": Field(COUNT, default=8081),
        "secret_env": Field(TEXT),
    }
)
WEB = Fields(
    {
        "enabled": Field(FLAG, default=False),
        "port": Field(COUNT, default=3232),
        "host": Field(TEXT, default="localhost"),
        "session_expiry_hours": Field(COUNT, default=24),
        "open_browser": Field(FLAG, default=False),
        "tool_results": Field(FLAG, default=True),
        "message_grouping": Field(Choice(("separate", "grouped")), default="separate"),
    }
)
# `chat` of a fleet is that of older versions.
_FLEET_CHAT = Fields(
    {"discord": Field(Fields({"enabled": Field(FLAG, default=False), "token_env": Field(TEXT)}))}
)
FLEET = Fields(
    {
        "version": Field(COUNT, default=1),
        "fleet": Field(Fields({"name": Field(TEXT), "description": Field(TEXT)}, strict=True)),
        "defaults": Field(DEFAULTS),
        "working_directory": Field(WORKING_DIRECTORY),
        "fleets": Field(Items(FLEET_REFERENCE), default=[]),
        "agents": Field(Items(AGENT_REFERENCE), default=[]),
        "chat": Field(_FLEET_CHAT),
        "webhooks": Field(WEBHOOKS),
        "web": Field(WEB),
        "docker": Field(FLEET_DOCKER),
    },
    strict=True,
)

SCHEMAS: dict[str, Kind] = {
    **CHAT_SCHEMAS,
    "AgentConfig": AGENT,
    "AgentDocker": AGENT_DOCKER,
    "AgentHooks": AGENT_HOOKS,
    "AgentOverrides": _OVERRIDES,
    "AgentReference": AGENT_REFERENCE,
    "AgentWorkingDirectory": AGENT_WORKING_DIRECTORY,
    "BaseWorkSource": BASE_WORK_SOURCE,
    "Chat": _FLEET_CHAT,
    "Defaults": DEFAULTS,
    "DiscordHookConfig": HOOKS["discord"],
    "Docker": FLEET_DOCKER,
    "FleetConfig": FLEET,
    "FleetDocker": FLEET_DOCKER,
    "FleetReference": FLEET_REFERENCE,
    "GitHubAuth": GITHUB_AUTH,
    "GitHubWorkSource": GITHUB_WORK_SOURCE,
    "HookConfig": HOOK,
    "Identity": IDENTITY,
    "Instances": INSTANCES,
    "McpServer": MCP_SERVER,
    "PermissionMode": PERMISSION_MODE,
    "Schedule": SCHEDULE,
    "Session": SESSION,
    "ShellHookConfig": HOOKS["shell"],
    "SlackHookConfig": HOOKS["slack"],
    "Web": WEB,
    "WebhookHookConfig": HOOKS["webhook"],
    "Webhooks": WEBHOOKS,
    "WorkSource": WORK_SOURCE,
    "WorkSourceLabels": WORK_SOURCE_LABELS,
    "WorkingDirectory": WORKING_DIRECTORY,
}
