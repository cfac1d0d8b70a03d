"""The variables that ${VAR} may refer to: those of the process and of the project's .env file."""

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path

from agents_app.skills import check_text, read_source

ENV_FILE = ".env"
# Secrets and addresses of this installation, which no project file may copy into an agent.
_RESERVED = (
    *("DROVER_*", "DATABASE_URL", "REDIS_URL", "PG*", "DJANGO_*", "CELERY_*", "FLOWER_*"),
    *("DOCKER_*", "PYTHON*", "LD_*"),
)
_LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_.-]*)\s*=[ \t]*(.*?)\s*")
_QUOTED = re.compile(r"""(["'`])(.*)\1(?:\s*#.*)?""")


def is_reserved(name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in _RESERVED)


def undefined_reason(name: str) -> str:
    if is_reserved(name):
        return f"{name} belongs to Drover itself, and files of a project cannot refer to it"
    return (
        f"the variable {name} is not set; write it to .env, set it and start Drover again, or give "
        f"a default: ${{{name}:-default}}"
    )


def project_variables(root: Path, server: Mapping[str, str]) -> dict[str, str]:
    """The variables by name; those of the process win. Raises a SkillError about .env."""
    source = read_source(root, root / ENV_FILE)
    if source:
        check_text(source)
    own = _parse(source.text) if source else {}
    passed = {name: value for name, value in server.items() if not is_reserved(name)}
    return own | passed


def only_in_files(variables: Mapping[str, str], server: Mapping[str, str]) -> dict[str, str]:
    """The variables that the process lacks, and that processes of Drover may get."""
    return {
        name: value
        for name, value in variables.items()
        if name not in server and not is_reserved(name)
    }


def _parse(text: str) -> dict[str, str]:
    """Lines `NAME=value`, with quotes and comments; other lines are ignored, as by dotenv."""
    found = (_LINE.fullmatch(line) for line in text.splitlines())
    return {match[1]: _value(match[2]) for match in found if match}


def _value(text: str) -> str:
    if quoted := _QUOTED.fullmatch(text):
        inner = quoted[2]
        return inner.replace("\\n", "\n").replace("\\r", "\r") if quoted[1] == '"' else inner
    return text.partition(" #")[0].rstrip()
