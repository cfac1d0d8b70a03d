"""The reference page of signals as Markdown, derived from their declarations."""

from agents_app.signals.contract import EXIT_CODES, Signal
from agents_app.signals.declarations import SIGNALS
from agents_app.signals.fields import SignalField
from agents_app.signals.shell_command import usage_lines

_INTRODUCTION = """# Signals

A running agent reports to Drover with signals: it runs the command `drover NAME`, or sends
`POST /v1/signals/NAME` to the gateway (`DROVER_GATEWAY_URL`) with the header
`Authorization: Bearer $DROVER_RUN_TOKEN` and the fields as JSON or as a form. Every command prints
the answer of the gateway as JSON. Unknown fields are refused.
"""
_WITHOUT_GATEWAY = {
    "refuse": "the command exits with 5",
    "accept": "the command succeeds without effect",
    "file": "the command writes the file `$AL_SIGNAL_DIR/{name}`, which is read when the run ends",
}


def signal_reference() -> str:
    """One section per signal, then the exit codes of the command."""
    sections = [_section(signal) for signal in SIGNALS.values()]
    return "\n".join([_INTRODUCTION, *sections, _exit_codes()])


def _section(signal: Signal) -> str:
    lines = [f"## {signal.name}", "", f"{signal.summary}. {signal.details}", ""]
    lines += ["```text", *(f"drover {usage}" for usage, _ in usage_lines(signal)), "```", ""]
    if signal.fields:
        lines += ["| Field | Type | Required | Description |", "|---|---|---|---|"]
        lines += [_row(field) for field in signal.fields]
        lines.append("")
    lines.append(f"- Answer: {signal.answer}")
    without = _WITHOUT_GATEWAY[signal.without_gateway].format(name=signal.name)
    lines.append(f"- Without a gateway: {without}.")
    if not signal.repeatable:
        lines.append("- Not retried after a broken connection, because it would take effect twice.")
    if signal.command.aliases:
        aliases = ", ".join(f"`{alias}`" for alias in signal.command.aliases)
        lines.append(f"- Other names of the command: {aliases}.")
    return "\n".join([*lines, ""])


def _row(field: SignalField) -> str:
    types = field.schema["type"]
    kind = types if isinstance(types, str) else " or ".join(types)
    required = "yes" if field.required else "no"
    return f"| `{field.name}` | {kind} | {required} | {field.description} |"


def _exit_codes() -> str:
    lines = ["## Exit codes", "", "| Code | Meaning | HTTP status |", "|---|---|---|"]
    for each in EXIT_CODES:
        statuses = ", ".join(status.replace("?", "x") for status in each.statuses)
        lines.append(f"| {each.code} | {each.meaning} | {statuses} |")
    return "\n".join([*lines, ""])
