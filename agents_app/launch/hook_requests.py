"""The requests that hooks of the types webhook, slack and discord send, and what the replies mean.

Values of credentials are in URLs and headers of requests only, never in a message.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from agents_app.errors import Refused
from agents_app.launch.hook_context import EventHook, HookContext, as_json
from agents_app.notifications import OutgoingReply, OutgoingRequest
from agents_app.secrets import with_variables
from agents_app.text import rough

SLACK_URL = "https://slack.com/api/chat.postMessage"
DISCORD_URL = "https://discord.com/api/v10/channels/{}/messages"
BOT_TOKENS = {"slack": "SLACK_BOT_TOKEN", "discord": "DISCORD_BOT_TOKEN"}
# Discord refuses longer messages, and Slack shows them folded.
MAX_MESSAGE_LENGTH = 1900
MAX_ERROR_LENGTH = 500
_JSON = {"Content-Type": "application/json; charset=utf-8"}

Variables = Mapping[str, str]


def build_request(hook: EventHook, context: HookContext, variables: Variables) -> OutgoingRequest:
    """`variables` are those of the agent's credentials; Refused if one that is used is missing."""
    return _BUILDERS[hook.type](hook, context, variables)


def reply_problem(hook: EventHook, reply: OutgoingReply) -> str:
    """Why the request had no effect; empty if it had."""
    if not 200 <= reply.status < 300:
        return f"the answer has the status {reply.status}"
    if hook.type == "slack" and hook.channel_id:
        return _slack_problem(reply.body)
    return ""


def _slack_problem(body: bytes) -> str:
    """The API of Slack answers with status 200 and the reason in the body."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return "the answer of Slack is no JSON"
    if isinstance(answer, dict) and answer.get("ok") is True:
        return ""
    reason = answer.get("error") if isinstance(answer, dict) else None
    return f"Slack answered: {str(reason or 'not ok')[:100]}"


# --- one builder for each type --------------------------------------------------------------


def _webhook(hook: EventHook, context: HookContext, variables: Variables) -> OutgoingRequest:
    headers = {name: _header(value, variables) for name, value in hook.headers.items()}
    given = {name.lower() for name in headers}
    own = {name: value for name, value in _JSON.items() if name.lower() not in given}
    body = as_json(context).encode(errors="replace")
    url = with_variables(hook.url, variables)
    return OutgoingRequest(url, body, own | headers, method=hook.method)


def _slack(hook: EventHook, context: HookContext, variables: Variables) -> OutgoingRequest:
    # Slack reads these characters as markup: an error must not notify a whole channel.
    text = message_of(context)
    for char, written in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        text = text.replace(char, written)
    if hook.url:
        return _message(with_variables(hook.url, variables), {"text": text}, {})
    token = _bot_token(hook, variables)
    body = {"channel": hook.channel_id, "text": text}
    return _message(SLACK_URL, body, {"Authorization": f"Bearer {token}"})


def _discord(hook: EventHook, context: HookContext, variables: Variables) -> OutgoingRequest:
    body = {"content": message_of(context), "allowed_mentions": {"parse": []}}
    if hook.url:
        return _message(with_variables(hook.url, variables), body, {})
    token = _bot_token(hook, variables)
    url = DISCORD_URL.format(hook.channel_id)
    return _message(url, body, {"Authorization": f"Bot {token}"})


_BUILDERS: Mapping[str, Callable[[EventHook, HookContext, Variables], OutgoingRequest]] = {
    "webhook": _webhook,
    "slack": _slack,
    "discord": _discord,
}


def _message(url: str, body: Mapping[str, Any], headers: Mapping[str, str]) -> OutgoingRequest:
    written = json.dumps(body, ensure_ascii=False).encode(errors="replace")
    return OutgoingRequest(url, written, {**_JSON, **headers})


def _bot_token(hook: EventHook, variables: Variables) -> str:
    name = hook.bot_token_env or BOT_TOKENS[hook.type]
    return _header(f"${{{name}}}", variables)


def _header(value: str, variables: Variables) -> str:
    """The message of an error must not contain the value, which may be a secret."""
    found = with_variables(value, variables)
    if not (found.isascii() and found.isprintable()):
        raise Refused(f"the value of {value[:80]!r} cannot be sent in a header: it is not one line")
    return found


# --- the text for people --------------------------------------------------------------------


def message_of(context: HookContext) -> str:
    """One line about the run, then its error or the end of its output."""
    job, result = context["job"], context["result"]
    where = f" ({job['scheduleName']})" if "scheduleName" in job else ""
    head = f"{context['agent']['name']}: run {job['id']}{where} {context['event']}"
    lines = [f"{head} after {rough(job['durationMs'] / 1000)}"]
    if error := result.get("error"):
        lines.append(error[:MAX_ERROR_LENGTH])
    left = MAX_MESSAGE_LENGTH - sum(map(len, lines)) - len(lines)
    if output := result["output"].strip():
        lines.append(output if len(output) <= left else f"...{output[3 - left :]}")
    return "\n".join(lines)
