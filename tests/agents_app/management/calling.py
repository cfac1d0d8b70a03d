"""Calls a command as Python code does, and keeps what it said."""

import json
from dataclasses import dataclass
from io import StringIO
from typing import Any

from django.core.management import CommandError, call_command


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Terminal(StringIO):
    """Takes what is printed for one; its width is COLUMNS."""

    def isatty(self) -> bool:
        return True


def call(*arguments: str, terminal: bool = False) -> Said:
    out, err = Terminal() if terminal else StringIO(), StringIO()
    code = 0
    try:
        call_command(*arguments, stdout=out, stderr=err)
    except SystemExit as left:
        assert isinstance(left.code, int)
        code = left.code
    except CommandError as error:
        code = error.returncode
        err.write(f"{error}\n")
    return Said(code, out.getvalue(), err.getvalue())
