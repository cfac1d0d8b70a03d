"""Every log line has an event name that can be searched for: a literal, `noun.what_happened`."""

import ast
import re

from tests.codebase.source import Module, calls, modules

LEVELS = {"debug", "info", "warning", "error", "exception", "critical"}
EVENT = re.compile(r"[a-z][a-z_]*\.[a-z][a-z_]*")
# The journal logs what it has written down, whose name is a row's.
SAYS_A_ROW = {"agents_app.events.journal"}


def _loggers(module: Module) -> set[str]:
    """Names in it that hold a structlog logger."""
    return {
        target.id
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Assign) and "get_logger" in ast.unparse(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _log_calls(module: Module) -> list[ast.Call]:
    loggers = _loggers(module)
    return [
        call
        for call in calls(module)
        if isinstance(call.func, ast.Attribute)
        and isinstance(call.func.value, ast.Name)
        and call.func.value.id in loggers
        and call.func.attr in LEVELS | {"log"}
    ]


def _event(call: ast.Call) -> object:
    first = call.args[0] if call.args else None
    return first.value if isinstance(first, ast.Constant) else None


def badly_named(module: Module) -> list[str]:
    return [
        f"{module.at(call.lineno)}: {ast.unparse(call)[:80]}"
        for call in _log_calls(module)
        if not (isinstance(name := _event(call), str) and EVENT.fullmatch(name))
    ]


def test_every_log_call_names_its_event():
    wrong = [
        place
        for module in modules()
        if module.name not in SAYS_A_ROW
        for place in badly_named(module)
    ]
    assert wrong == []


def test_there_are_log_calls_to_look_at():
    assert sum(len(_log_calls(module)) for module in modules()) > 30


def test_every_entry_of_the_journal_has_such_a_name():
    wrong = []
    for module in modules():
        for call in calls(module):
            if ast.unparse(call.func) in {
                "journal.JournalEntry",
                "run_entry",
                "_record_change",
                "_record_event",
            }:
                name = ast.unparse(call.args[0]).strip("'")
                if not EVENT.fullmatch(name) and not name.startswith(("f'run.{", "name")):
                    wrong.append(f"{module.at(call.lineno)}: {name}")
    assert wrong == []


def test_values_are_fields_and_not_part_of_the_name(tmp_path, monkeypatch):
    """The check above can fail."""
    from tests.codebase import source

    monkeypatch.setattr(source, "ROOT", tmp_path)
    path = tmp_path / "talkative.py"
    path.write_text(
        "log = structlog.get_logger('x')\n"
        "log.info('run.lost', run_id=1)\n"
        "log.info(f'run {run} was lost')\n"
        "log.warning('lost a run')\n"
        "log.error(message)\n"
    )
    assert len(badly_named(Module(path))) == 3


def test_loggers_are_named_after_the_product():
    wrong = [
        f"{module.at(call.lineno)}: {ast.unparse(call)}"
        for module in modules()
        for call in calls(module)
        if ast.unparse(call.func) in {"structlog.get_logger", "logging.getLogger"}
        and not (isinstance(name := _event(call), str) and name.split(".")[0] == "drover")
    ]
    assert wrong == []
