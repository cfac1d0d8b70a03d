"""Questions on a terminal, each with a default."""

import sys


def ask(question: str, default: str, choices: tuple[str, ...] = ()) -> str:
    """The answer, or the default for an empty line; asks again until it is one of the choices."""
    offered = f" ({', '.join(choices)})" if choices else ""
    while True:
        answer = _read_line(f"{question}{offered} [{default}]: ") or default
        if not choices or answer in choices:
            return answer
        sys.stderr.write(f"{answer!r} is not one of {', '.join(choices)}\n")


def _read_line(prompt: str) -> str:
    try:
        return input(prompt).strip()
    except EOFError:
        # Ctrl-D: no further answers; the command ends as after Ctrl-C.
        raise KeyboardInterrupt from None
