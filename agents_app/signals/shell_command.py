"""The part of the script `agents_app/agent_bin/drover` that derives from the declarations.

The script is committed; `make agent-command` writes the derived part and the links again.
"""

import textwrap
from collections.abc import Iterator
from pathlib import Path

from agents_app.conf import ROOT
from agents_app.signals.contract import EXIT_CODES, CommandOption, Signal
from agents_app.signals.declarations import SIGNALS
from agents_app.signals.handlers import DEFAULT_EXIT_CODE, MAX_WAIT_SECONDS

SCRIPT = ROOT / "agents_app" / "agent_bin" / "drover"
BEGIN = "# --- derived from agents_app/signals/declarations.py by `make agent-command`: begin ---\n"
END = "# --- derived: end ---\n"
USAGE_WIDTH = 44
_HELP_WIDTH = 96


def write_command(script: Path = SCRIPT) -> None:
    """Write the derived part into the script, and a link for each other name of a command."""
    script.write_text(rendered(script.read_text()))
    for alias in aliases():
        link = script.with_name(alias)
        link.unlink(missing_ok=True)
        link.symlink_to(script.name)


def rendered(script: str) -> str:
    """The text of the script with the derived part replaced."""
    before, _, rest = script.partition(BEGIN)
    _, _, after = rest.partition(END)
    return "".join([before, BEGIN, *_derived(), END, after])


def aliases() -> dict[str, str]:
    """The command of each other name of the script."""
    return {alias: each.name for each in SIGNALS.values() for alias in each.command.aliases}


def usage_lines(signal: Signal) -> list[tuple[str, str]]:
    """Usage and explanation of a command, as the help shows them."""
    command = signal.command
    # Options must not be torn apart: a no-break space stands for the space in them.
    words = [signal.name, command.arguments, *(option.usage for option in command.options)]
    text = " ".join(word.replace(" ", "\xa0") for word in words if word)
    indent = " " * (len(signal.name) + 1)
    first, *rest = textwrap.wrap(
        text, USAGE_WIDTH, subsequent_indent=indent, break_on_hyphens=False
    )
    lines = [(first, signal.summary), *((line, "") for line in rest), *command.more_usage]
    return [(usage.replace("\xa0", " "), explanation) for usage, explanation in lines]


# --- the parts ------------------------------------------------------------------------------


def _derived() -> Iterator[str]:
    yield from _constants()
    yield from _about()
    yield from _case(
        "command_of_link",
        "Sets `linked` to the command that the name of the script stands for.",
        _links(),
    )
    yield from _case(
        "exit_by_status", "Exits by the HTTP status, the last line of the answer.", _statuses()
    )
    yield from _case("is_repeatable", "Whether the signal may be sent twice.", _repeatable())
    yield from _case(
        "without_gateway", "Sets `action`, what is done without a gateway.", _without_gateway()
    )
    yield from _case(
        "describe_option",
        "Sets `check`, the check of the value, and the field of the option.",
        _options(),
    )
    yield from _case(
        "parse_command", "Reads the arguments of the command and sends the signal.", _parsers()
    )


def _constants() -> Iterator[str]:
    names = " ".join(f"{each.name}={each.code}" for each in EXIT_CODES)
    yield from (f"{line}\n" for line in textwrap.wrap(names, _HELP_WIDTH))
    yield f"DEFAULT_EXIT_CODE={DEFAULT_EXIT_CODE}\n"
    yield "# The gateway answers a request that waits after this time at the latest.\n"
    yield f"MAX_WAIT_SECONDS={MAX_WAIT_SECONDS:g}\n"


def _about() -> Iterator[str]:
    yield "\n# about COMMAND: its lines in the help.\nabout() {\n    case $1 in\n"
    for signal in SIGNALS.values():
        yield f"        {signal.name})\n"
        for usage, explanation in usage_lines(signal):
            yield f"            help_line {_quoted(usage)} {_quoted(explanation)}\n"
        yield "            ;;\n"
    yield "        *) return 1 ;;\n    esac\n}\n"
    yield "\nabout_all() {\n    for each in"
    names = textwrap.wrap(" ".join(SIGNALS), 80, break_on_hyphens=False)
    yield " \\\n       ".join(f" {line}" for line in names)
    yield '; do\n        about "$each"\n    done\n}\n'
    yield "\nhelp_of_names_and_codes() {\n    cat <<'HELP'\n"
    for text in (_names_help(), _codes_help()):
        yield from (
            f"{line}\n" for line in textwrap.wrap(text, _HELP_WIDTH, break_on_hyphens=False)
        )
    yield "HELP\n}\n"


def _names_help() -> str:
    names = [
        alias if alias == f"al-{name}" else f"{alias}\xa0({name})"
        for alias, name in aliases().items()
    ]
    return f"Other names: {', '.join(names)}.".replace("\xa0", " ")


def _codes_help() -> str:
    codes = ", ".join(f"{each.code} {each.meaning}" for each in EXIT_CODES)
    return f"Exit codes: {codes}."


def _case(function: str, comment: str, branches: list[tuple[str, str]]) -> Iterator[str]:
    """A function with one `case` statement over `$subject`."""
    subject = {"exit_by_status": "$answer", "command_of_link": "$1", "describe_option": "$1"}
    yield f"\n# {comment}\n{function}() {{\n    case {subject.get(function, '$command')} in\n"
    for pattern, body in branches:
        yield f"        {pattern}) {body} ;;\n"
    yield "    esac\n}\n"


def _links() -> list[tuple[str, str]]:
    return [(alias, f"linked={name}") for alias, name in aliases().items()]


def _statuses() -> list[tuple[str, str]]:
    return [
        (" | ".join(f'*"$nl"{status}' for status in each.statuses), f"exit ${each.name}")
        for each in EXIT_CODES
        if each.statuses
    ]


def _repeatable() -> list[tuple[str, str]]:
    once = [each.name for each in SIGNALS.values() if not each.repeatable]
    return [(" | ".join(once), "return 1")]


def _without_gateway() -> list[tuple[str, str]]:
    return [
        (
            " | ".join(e.name for e in SIGNALS.values() if e.without_gateway == kind),
            f"action={kind}",
        )
        for kind in ("accept", "file", "refuse")
    ]


def _options() -> list[tuple[str, str]]:
    options: dict[str, CommandOption] = {
        option.name: option for each in SIGNALS.values() for option in each.command.options
    }
    return [
        (f"--{option.name}", f"check={option.check} field_of_option={option.field}")
        for option in options.values()
    ]


def _parsers() -> list[tuple[str, str]]:
    return [(each.name, _parser(each)) for each in SIGNALS.values()]


def _parser(signal: Signal) -> str:
    command = signal.command
    if command.parser == "text":
        return f'parse_text {command.field} "$@"'
    if command.parser != "words":
        return f'parse_{command.parser} "$@"'
    options = " ".join(f"--{option.name}" for option in command.options)
    words = f"parse_words {_quoted(command.field)} {_quoted(options)} {command.check}"
    timeout = f"timeout={command.timeout_seconds} && " if command.timeout_seconds else ""
    return f'{timeout}{words} "$@"'


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
