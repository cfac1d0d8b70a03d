"""reference/configuration.md: environment variables from conf.py, config.toml from the specs."""

import ast
from dataclasses import dataclass

from agents_app import conf
from tests.docs.generate.fields import config_sections
from tests.docs.generate.markdown import code, describe, descriptions, page, table

_ENVIRONMENT = """
Drover reads environment variables when a process starts. A value that cannot be used is refused
at the start with the name of the variable and what is accepted.
"""
_CONFIG = """
`config.toml` in the project directory is optional, and so is each of its fields. A change takes
effect within two seconds, without a restart. Field names may be written in `snake_case` or
`camelCase`. A file with an error leaves the previous settings in force; `drover doctor`, the
log and the dashboard name the file, the line and the reason.
"""
# Readers of conf.py by name, and what they accept.
_KINDS = {
    "_yes": "`yes` or `no`",
    "_words": "texts with commas between",
    "_seconds": "seconds, more than 0 and less than 86400",
    "_redis_url": "URL",
    "_public_url": "URL without a path",
}


@dataclass(frozen=True)
class Variable:
    name: str
    accepts: str = "text"
    default: str = ""


def variables() -> list[Variable]:
    """Every variable that read_conf reads, in its order."""
    tree = ast.parse((conf.ROOT / "agents_app" / "conf.py").read_text())
    (reader,) = (
        node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "read_conf"
    )
    found: dict[str, Variable] = {}
    for node in ast.walk(reader):
        if isinstance(node, ast.Call) and (variable := _variable(node)):
            found.setdefault(variable.name, variable)
    return sorted(found.values(), key=lambda each: each.name)


def _variable(call: ast.Call) -> Variable | None:
    name = _name(call)
    if not name:
        return None
    function = ast.unparse(call.func)
    values = [arg.value for arg in call.args[2:] if isinstance(arg, ast.Constant)]
    if function == "_whole":
        default, low, high = values
        return Variable(name, f"whole number from {low} to {high}", str(default))
    if function == "_choice":
        allowed = ast.literal_eval(call.args[3])
        return Variable(name, ", ".join(code(each) for each in sorted(allowed)), str(values[0]))
    return Variable(name, _KINDS.get(function, "text"), str(values[0]) if values else "")


def _name(call: ast.Call) -> str:
    constants = [arg.value for arg in call.args[:2] if isinstance(arg, ast.Constant)]
    texts = [value for value in constants if isinstance(value, str)]
    return texts[0] if texts and texts[0].isupper() else ""


def render() -> str:
    read = {each.name: each for each in variables()}
    named = sorted(read.keys() | descriptions("environment").keys())
    rows = [
        (code(name), one.accepts, code(one.default) if one.default else "", _meaning(name))
        for name in named
        for one in (read.get(name) or Variable(name),)
    ]
    return page(
        "Configuration",
        "agents_app/conf.py and agents_app/skills/specs.py",
        "## Environment variables",
        _ENVIRONMENT,
        table(("variable", "value", "default", "meaning"), rows),
        "## config.toml",
        _CONFIG,
        *config_sections(),
    )


def _meaning(name: str) -> str:
    return describe("environment", name)


_RUN = """
Every run gets the variables below, the variables of its [credentials](../guides/credentials.md),
and those that `env` of the agent names. Of the environment of Drover itself a run gets `PATH`,
`HOME`, `LANG`, `LC_ALL`, `TERM`, `TZ`, `USER` and `LOGNAME` only.
"""


def render_run_environment() -> str:
    rows = [(code(name), meaning) for name, meaning in descriptions("run_environment").items()]
    return page(
        "Environment of a run",
        "agents_app/runners/environment.py",
        _RUN,
        table(("variable", "meaning"), rows),
    )
