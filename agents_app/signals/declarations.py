"""Every signal, declared once.

The gateway's route and its OpenAPI description, the commands of the script
`agents_app/agent_bin/drover` and the reference page of the documentation derive from this table.
After a change run `make agent-command`, which writes the derived part of the script.
"""

from agents_app.harness import MOST_TOKENS, MOST_USD
from agents_app.signals import handlers
from agents_app.signals.contract import LARGE_BODY_BYTES, Command, CommandOption, Signal
from agents_app.signals.fields import (
    boolean_field,
    boolean_or_seconds_field,
    call_id_field,
    call_ids_field,
    integer_field,
    number_field,
    seconds_field,
    text_field,
    uri_field,
)
from agents_app.signals.handlers import DEFAULT_EXIT_CODE, MAX_WAIT_SECONDS
from agents_app.signals.lock_uris import MAX_URI_LENGTH
from agents_app.signals.locks import MAX_TTL_SECONDS

_URI = uri_field(
    "uri", "The name of the resource, such as github://acme/app/issues/1.", MAX_URI_LENGTH
)
_TTL = number_field(
    "ttl", "Seconds after which the lock expires; 1800 by default.", 0.001, MAX_TTL_SECONDS
)
_TIMEOUT = seconds_field(
    "timeout", f"Seconds to wait, at most {MAX_WAIT_SECONDS:g} for one request."
)
_TTL_OPTION = CommandOption("ttl", "SECONDS")
_TIMEOUT_OPTION = CommandOption("timeout", "SECONDS", "timeout")

_DECLARED = (
    Signal(
        "status",
        "Set the status text of the run",
        "People see the text on the page of the run. The first 500 characters are stored.",
        handlers.status,
        (text_field("text", "The status text.", required=True, free_text=True),),
        Command("TEXT", "text", parser="text", aliases=("al-status",)),
        without_gateway="file",
        columns_from_file=handlers.columns_of_status,
    ),
    Signal(
        "progress",
        "Set the progress of the run in percent",
        "A text sets the status text, too.",
        handlers.progress,
        (
            number_field("percent", "From 0 to 100.", 0, 100, required=True),
            text_field("text", "The status text.", free_text=True),
        ),
        Command("PERCENT [TEXT]", parser="percent_text"),
    ),
    Signal(
        "rerun",
        "Run again when this run has succeeded",
        "Only a scheduled run is repeated, at most as often as the agent's `max_reruns` allows.",
        handlers.rerun,
        command=Command(aliases=("al-rerun",)),
        without_gateway="file",
        columns_from_file=handlers.columns_of_rerun,
    ),
    Signal(
        "return",
        "Set the result of the run, for its caller",
        "A caller reads the text with `check` or `wait`. The text has at most 1,000,000 bytes.",
        handlers.return_,
        (text_field("text", "The result.", required=True, free_text=True),),
        Command("TEXT", "text", parser="text", aliases=("al-return",)),
        without_gateway="file",
        columns_from_file=handlers.columns_of_return,
        body_limit_bytes=LARGE_BODY_BYTES,
    ),
    Signal(
        "metadata",
        "Set a value for the hooks of the run",
        "Hooks get all values as `metadata`, and `when: metadata.KEY` decides by one of them. A "
        'value that is JSON is stored as such: `true`, `5`, `{"a": 1}`; any other value is a text. '
        "A later value of the same key replaces the earlier one.",
        handlers.metadata,
        (
            text_field(
                "key", "1 to 100 letters, digits, `_` or `-`.", required=True, free_text=True
            ),
            text_field("value", "The value.", required=True, free_text=True),
        ),
        Command("KEY VALUE", parser="key_text"),
    ),
    Signal(
        "exit",
        f"Set the exit code of the run; {DEFAULT_EXIT_CODE} by default",
        "When the run has ended, this code is used instead of the exit code of its program.",
        handlers.exit_,
        (
            integer_field(
                "code", f"From 0 to 255; {DEFAULT_EXIT_CODE} by default.", 0, 255, DEFAULT_EXIT_CODE
            ),
        ),
        Command("[CODE]", "code", check="exit_code", aliases=("al-exit",)),
        without_gateway="file",
        columns_from_file=handlers.columns_of_exit,
    ),
    Signal(
        "shutdown",
        "Stop this run now",
        "The program gets SIGTERM, and SIGKILL after the grace period.",
        handlers.shutdown,
        command=Command(aliases=("al-shutdown",)),
    ),
    Signal(
        "call",
        "Call another agent; the answer has a callId",
        "The called agent runs with the text as its prompt. The call is stored before the answer "
        "is sent. A call without an answer fails after two hours.",
        handlers.call,
        (
            text_field("agent", "The name of the agent to call.", required=True, free_text=True),
            text_field("text", "The prompt of the called run.", default="", free_text=True),
        ),
        Command("AGENT [TEXT]", parser="agent_text", aliases=("al-subagent",)),
        answer='`{"ok": true, "callId": 7, "status": "pending"}`',
        repeatable=False,
        body_limit_bytes=LARGE_BODY_BYTES,
    ),
    Signal(
        "check",
        "Read the state of a call",
        "The status is pending, running, completed (with `returnValue`) or error (with "
        "`errorMessage`).",
        handlers.check,
        (call_id_field("id", "The callId that `call` returned."),),
        Command("ID", "id", check="one_word", aliases=("al-subagent-check",)),
        answer='`{"ok": true, "callId": 7, "status": "running"}`',
    ),
    Signal(
        "wait",
        "Wait until calls have ended",
        "While a run waits, the runs it called may use its slot. The command waits 900 seconds "
        "unless `--timeout` is given, and exits with 8 if a call has not ended by then.",
        handlers.wait,
        (call_ids_field("ids", "The callIds that `call` returned."), _TIMEOUT),
        Command(
            "ID...",
            "ids",
            (_TIMEOUT_OPTION,),
            check="calls",
            timeout_seconds=900,
            aliases=("al-subagent-wait",),
        ),
        answer='`{"ok": true, "done": true, "calls": [{"callId": 7, "status": "completed", '
        '"returnValue": "..."}]}`',
        cancel_wait=handlers.stop_waiting,
    ),
    Signal(
        "lock",
        "Take a lock on a resource",
        "A lock that another run holds is refused with 409 and its holder, or waited for, first "
        "come, first served. A wait that would be a deadlock is refused at once. `fence` grows "
        "with every lock.",
        handlers.lock,
        (
            _URI,
            _TTL,
            boolean_or_seconds_field("wait", "True, or the number of seconds to wait."),
            _TIMEOUT,
        ),
        Command(
            "URI",
            "uri",
            (_TTL_OPTION, CommandOption("wait", "SECONDS", "timeout")),
            check="one_word",
            aliases=("rlock",),
        ),
        answer='`{"ok": true, "expiresAt": 1767225600, "fence": 12}`',
        cancel_wait=handlers.leave_lock_queue,
        without_gateway="accept",
    ),
    Signal(
        "unlock",
        "Release a lock",
        "Locks are released when their run ends.",
        handlers.unlock,
        (_URI,),
        Command("URI", "uri", check="one_word", aliases=("runlock",)),
        without_gateway="accept",
    ),
    Signal(
        "lock-heartbeat",
        "Extend a lock",
        "The lock expires `ttl` seconds from now, by default as many as when it was taken.",
        handlers.lock_heartbeat,
        (_URI, _TTL),
        Command("URI", "uri", (_TTL_OPTION,), check="one_word", aliases=("rlock-heartbeat",)),
        answer='`{"ok": true, "expiresAt": 1767225600}`',
        without_gateway="accept",
    ),
    Signal(
        "usage",
        "Report tokens and cost since the last report",
        "The numbers are added to the usage of the run. A run over its budget is stopped.",
        handlers.usage,
        (
            integer_field("tokens_in", "Tokens the model read.", 0, MOST_TOKENS, 0),
            integer_field("tokens_out", "Tokens the model wrote.", 0, MOST_TOKENS, 0),
            integer_field(
                "tokens_cache", "Tokens read from or written to a cache.", 0, MOST_TOKENS, 0
            ),
            number_field("cost_usd", "Cost in US dollars.", 0, MOST_USD, default=0.0),
        ),
        Command(
            options=(
                CommandOption("tokens-in", "N"),
                CommandOption("tokens-out", "N"),
                CommandOption("tokens-cache", "N"),
                CommandOption("cost-usd", "X", "number"),
            ),
            check="usage",
        ),
        answer='`{"ok": true, "totals": {"tokens_in": 100, "tokens_out": 20, "tokens_cache": 0, '
        '"cost_usd": 0.25}, "over_budget": false}`',
        repeatable=False,
    ),
    Signal(
        "schedule",
        "Run this agent later, with the message",
        "The line is the same as after `/schedule` in the output of a run.",
        handlers.schedule,
        (
            text_field(
                "line",
                "PHRASE: MESSAGE, list, cancel N, pause N or resume N.",
                required=True,
                free_text=True,
            ),
        ),
        Command(
            '"PHRASE: MESSAGE"',
            "line",
            parser="text",
            more_usage=(
                (
                    "schedule list | cancel N | pause N | resume N",
                    "List, cancel, pause or resume schedules",
                ),
            ),
        ),
        answer='`{"ok": true, "text": "...", "scheduleId": 17}`',
        repeatable=False,
    ),
    Signal(
        "inbox",
        "Read the messages to this run",
        "A message is returned once, unless `peek` is set. Without a timeout the answer comes at "
        "once; with one it comes with the first message or when the time is over.",
        handlers.inbox,
        (_TIMEOUT, boolean_field("peek", "Leave the messages unread.")),
        Command(options=(_TIMEOUT_OPTION, CommandOption("peek", check="flag")), check="inbox"),
        answer='`{"ok": true, "messages": [{"id": 3, "from": "ann", "at": 1767225600, '
        '"text": "..."}]}`',
        repeatable=False,
    ),
)
SIGNALS: dict[str, Signal] = {signal.name: signal for signal in _DECLARED}
