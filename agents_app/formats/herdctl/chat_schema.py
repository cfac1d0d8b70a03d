"""The chats of herdctl's agents: fields, types and defaults; pure."""

from agents_app.formats.herdctl.validate import (
    Choice,
    Count,
    Field,
    Fields,
    Flag,
    Items,
    Kind,
    Text,
)

_TEXT, _FLAG, _COUNT = Text(), Flag(), Count()
_ON, _OFF = Field(_FLAG, default=True), Field(_FLAG, default=False)
_HOURS = Field(_COUNT, default=24)
_LOG_LEVEL = Field(Choice(("minimal", "standard", "verbose")), default="standard")


def _mode(default: str) -> Field:
    return Field(Choice(("mention", "auto")), default=default)


CHAT_DM = Fields(
    {
        "enabled": _ON,
        "mode": _mode("auto"),
        "allowlist": Field(Items(_TEXT)),
        "blocklist": Field(Items(_TEXT)),
    }
)
CHANNEL = Fields(
    {
        "id": Field(_TEXT, required=True),
        "name": Field(_TEXT),
        "mode": _mode("mention"),
        "context_messages": Field(_COUNT, default=10),
    }
)
DISCORD_GUILD = Fields(
    {
        "id": Field(_TEXT, required=True),
        "channels": Field(Items(CHANNEL)),
        "dm": Field(CHAT_DM),
    }
)
DISCORD_PRESENCE = Fields(
    {
        "activity_type": Field(Choice(("playing", "watching", "listening", "competing"))),
        "activity_message": Field(_TEXT),
    }
)
_OUTPUT = {
    "tool_results": _ON,
    "tool_result_max_length": Field(Count(most=1000), default=900),
    "system_status": _ON,
    "errors": _ON,
}
CHAT_OUTPUT = Fields(_OUTPUT)
DISCORD_OUTPUT = Fields(
    {
        **_OUTPUT,
        "result_summary": _OFF,
        "typing_indicator": _ON,
        "acknowledge_emoji": Field(_TEXT, default="👀"),
        "final_answer_only": _ON,
        "progress_indicator": _ON,
        "concise_mode": _ON,
    }
)
DISCORD_VOICE = Fields(
    {
        "enabled": _OFF,
        "provider": Field(Choice(("openai",)), default="openai"),
        "api_key_env": Field(_TEXT, default="OPENAI_API_KEY"),
        "model": Field(_TEXT, default="whisper-1"),
        "language": Field(_TEXT),
    }
)
AGENT_CHAT_DISCORD = Fields(
    {
        "bot_token_env": Field(_TEXT, required=True),
        "session_expiry_hours": _HOURS,
        "log_level": _LOG_LEVEL,
        "output": Field(DISCORD_OUTPUT, default={}),
        "presence": Field(DISCORD_PRESENCE),
        "guilds": Field(Items(DISCORD_GUILD), required=True),
        "dm": Field(CHAT_DM),
        "voice": Field(DISCORD_VOICE),
    }
)
AGENT_CHAT_SLACK = Fields(
    {
        "bot_token_env": Field(_TEXT, default="SLACK_BOT_TOKEN"),
        "app_token_env": Field(_TEXT, default="SLACK_APP_TOKEN"),
        "session_expiry_hours": _HOURS,
        "log_level": _LOG_LEVEL,
        "channels": Field(Items(CHANNEL), required=True),
        "dm": Field(CHAT_DM),
        "output": Field(CHAT_OUTPUT),
    }
)
AGENT_CHAT = Fields({"discord": Field(AGENT_CHAT_DISCORD), "slack": Field(AGENT_CHAT_SLACK)})

CHAT_SCHEMAS: dict[str, Kind] = {
    "AgentChat": AGENT_CHAT,
    "AgentChatDiscord": AGENT_CHAT_DISCORD,
    "AgentChatSlack": AGENT_CHAT_SLACK,
    "ChatDM": CHAT_DM,
    "ChatOutput": CHAT_OUTPUT,
    "DiscordChannel": CHANNEL,
    "DiscordGuild": DISCORD_GUILD,
    "DiscordOutput": DISCORD_OUTPUT,
    "DiscordPresence": DISCORD_PRESENCE,
    "DiscordVoice": DISCORD_VOICE,
    "SlackChannel": CHANNEL,
}
