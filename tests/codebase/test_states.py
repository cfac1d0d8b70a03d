"""States change only in lifecycle.py, and functions that decide are given the time."""

import ast
import re

from tests.codebase.source import Module, calls, modules
from tests.codebase.test_imports import EDGES, ORDER, package_of

# The parts of the supervisor and the runners have states of their own, which are not rows.
MOVERS = {
    f"agents_app.runs.{name}" for name in ("lifecycle", "handover", "statements", "schedule_states")
}
ROWS_LIVE_HERE = [
    module
    for module in modules()
    if not module.name.startswith(("agents_app.models", "agents_app.stack", "agents_app.runners"))
    and module.name not in MOVERS
]
# Of a worker and of the scheduler, which have no moves that others race for.
OTHER_STATES = re.compile(r"(Worker|Scheduler)\.State\.")
WORKERS_OWN = {"agents_app.worker.lease"}
WRITES_A_STATE = re.compile(
    r"UPDATE\s+drover_(run|work_item|schedule)\s+SET\s[^;]*\bstate\s*=", re.IGNORECASE
)


def _assigned_states(module: Module) -> list[int]:
    targets: list[ast.expr] = []
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Assign):
            targets += node.targets
        elif isinstance(node, ast.AugAssign | ast.AnnAssign):
            targets.append(node.target)
    flat = [part for target in targets for part in ast.walk(target)]
    return [
        part.lineno
        for part in flat
        if isinstance(part, ast.Attribute)
        and part.attr == "state"
        and isinstance(part.ctx, ast.Store)
    ]


def _updated_states(module: Module) -> list[int]:
    return [
        call.lineno
        for call in calls(module)
        if isinstance(call.func, ast.Attribute) and call.func.attr == "update"
        for keyword in call.keywords
        if keyword.arg == "state" and not OTHER_STATES.match(ast.unparse(keyword.value))
    ]


def _set_by_name(module: Module) -> list[int]:
    return [
        call.lineno
        for call in calls(module)
        if isinstance(call.func, ast.Name)
        and call.func.id == "setattr"
        and isinstance(call.args[1], ast.Constant)
        and call.args[1].value == "state"
    ]


def _written_in_sql(module: Module) -> list[int]:
    return [
        node.lineno
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and WRITES_A_STATE.search(node.value)
    ]


def found_in(module: Module) -> list[str]:
    lines = _assigned_states(module) + _set_by_name(module) + _written_in_sql(module)
    if module.name not in WORKERS_OWN:
        lines += _updated_states(module)
    return [module.at(line) for line in sorted(lines)]


def test_nothing_but_lifecycle_changes_the_state_of_a_run_work_item_or_schedule():
    assert [place for module in ROWS_LIVE_HERE for place in found_in(module)] == []


def test_the_search_for_states_finds_every_way_to_change_one(tmp_path, monkeypatch):
    from tests.codebase import source

    ways = [
        "run.state = 'lost'",
        "a, run.state = 1, 'lost'",
        "Run.objects.filter(pk=1).update(state='lost')",
        "Run.objects.update(state=Run.State.LOST, error='')",
        "setattr(run, 'state', 'lost')",
        "SQL = 'UPDATE drover_run SET error = 1, state = 2 WHERE id = 3'",
    ]
    monkeypatch.setattr(source, "ROOT", tmp_path)
    for number, way in enumerate(ways):
        path = tmp_path / f"way_{number}.py"
        path.write_text(way)
        assert len(found_in(Module(path))) == 1, way
    fine = tmp_path / "fine.py"
    fine.write_text(
        "Worker.objects.update(state=Worker.State.DEAD)\nif run.state == 'lost': pass\n"
    )
    assert found_in(Module(fine)) == []


# --- the clock ------------------------------------------------------------------------------

CLOCKS = {"datetime.now", "datetime.utcnow", "timezone.now", "time.time", "datetime.today"}
TOLD_THE_TIME = ORDER[ORDER.index("agents_app.events") : ORDER.index(EDGES[0])]
READS_IT = {
    "agents_app.worker.lease.utc_now",  # the clock that a worker process passes on
    "agents_app.launch.hooks.write_marker",  # the time of a remark in the output of a run
    "agents_app.output.watchers.__exit__",  # the time of the last line
    "agents_app.runs.shutdown.count_running",  # waits for real processes
}


def test_verbs_never_read_the_clock():
    wrong = [
        f"{module.at(call.lineno)}: {ast.unparse(call.func)}"
        for module in modules("agents_app")
        if package_of(module.name) in TOLD_THE_TIME
        for call in calls(module)
        if ast.unparse(call.func) in CLOCKS and not _allowed(module, call.lineno)
    ]
    assert wrong == []


def _allowed(module: Module, line: int) -> bool:
    inside = [
        f"{module.name}.{node.name}"
        for node in ast.walk(module.tree)
        if isinstance(node, ast.FunctionDef) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    return bool(READS_IT.intersection(inside))
