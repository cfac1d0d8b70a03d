"""What to add to the sandbox of an agent whose program reports that a path was refused."""

import os
import re

from agents_app.runners.base import READ_ADVICE, WRITE_ADVICE, Sandbox, is_below

REFUSAL = re.compile(rb"[Pp]ermission denied|EACCES")
_ANY_PATH = re.compile(r"/[^\s:'\"`,;()<>|\x1b]+")
MAX_PATHS = 5


def advice_on_refusals(output: bytes, sandbox: Sandbox) -> dict[str, str]:
    """What to add for the paths that the output reports as refused, if the sandbox refused them."""
    advice: dict[str, str] = {}
    for line in output.splitlines():
        if not REFUSAL.search(line):
            continue
        # A path at the beginning is usually the name of the program that reports.
        paths = _ANY_PATH.findall(line.decode(errors="replace"), 1)
        path = paths[-1].rstrip(".") if paths else ""
        if path and len(advice) < MAX_PATHS and (text := _advice(path, sandbox)):
            advice[path] = text
    return advice


def _advice(path: str, sandbox: Sandbox) -> str:
    """Empty if the path is allowed, if its user may not use it anyway, or if it is private."""
    real = os.path.realpath(path)
    writable = tuple(map(os.path.realpath, sandbox.all_write))
    readable = tuple(map(os.path.realpath, sandbox.all_read))
    if is_below(real, writable) or _is_private(real, sandbox):
        return ""
    if os.access(real, os.R_OK) and not is_below(real, readable):
        return READ_ADVICE.format(path)
    if not os.path.lexists(real):
        path = os.path.dirname(path)  # noqa: PTH120
        real = os.path.realpath(path)
    may_advise = os.access(real, os.W_OK) and not _is_private(real, sandbox)
    return WRITE_ADVICE.format(path) if may_advise else ""


def _is_private(real: str, sandbox: Sandbox) -> bool:
    """Drover's files, and those of users beside their toolchains; also a directory above them."""
    if is_below(real, sandbox.hidden):
        return True
    if is_below(real, sandbox.homes):
        return not is_below(real, sandbox.toolchains)
    return any(is_below(home, (real,)) for home in sandbox.homes)
