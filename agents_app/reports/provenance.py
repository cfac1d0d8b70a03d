"""The cause of a run as a tree: the cause, its work item, the runs, and their calls.

The number of queries grows with the depth of the calls, not with their number.
"""

from collections import defaultdict
from dataclasses import dataclass, field

from agents_app.models import AgentCall, Message, Run, WorkItem
from agents_app.signals import lineage

# The limits of one tree.
MOST_CALLS = 1000
MOST_RUNS = 1000


@dataclass(frozen=True, slots=True)
class Cause:
    """A row with a page, or a text, and below it the rows that it caused."""

    label: str
    table: str = ""
    key: int = 0
    state: str = ""
    detail: str = ""
    here: bool = False
    below: "tuple[Cause, ...]" = ()


@dataclass
class _Tree:
    """The rows of a tree: the runs of each work item, and the calls of each run."""

    here: int
    runs: dict[int, list[Run]] = field(default_factory=lambda: defaultdict(list))
    calls: dict[int, list[AgentCall]] = field(default_factory=lambda: defaultdict(list))
    left: int = MOST_CALLS


def read_cause_tree(run: Run) -> Cause:
    """The whole tree that a run belongs to."""
    first = lineage(run)[0].work_item_id
    item = WorkItem.objects.select_related("agent", "firing", "schedule", "rule").get(pk=first)
    tree = _Tree(run.pk)
    items = [item.pk]
    while items:
        items = _read_level(tree, items)
    work = Cause(
        f"Work item {item.pk}",
        "workitem",
        item.pk,
        item.state,
        item.reason,
        below=_runs(tree, item),
    )
    return _cause_of_work_item(item, work)


# --- reading --------------------------------------------------------------------------------


def _read_level(tree: _Tree, items: list[int]) -> list[int]:
    """Read the runs and calls of the work items; returns the called work items."""
    runs = Run.objects.filter(work_item__in=items).select_related("agent").order_by("pk")
    found = list(runs[:MOST_RUNS])
    for run in found:
        tree.runs[run.work_item_id].append(run)
    calls = AgentCall.objects.filter(caller_run__in=[run.pk for run in found])
    found_calls = list(calls.select_related("agent", "work_item").order_by("pk")[: tree.left])
    tree.left -= len(found_calls)
    for call in found_calls:
        tree.calls[call.caller_run_id].append(call)
    return [call.work_item_id for call in found_calls]


def _cause_of_work_item(item: WorkItem, work: Cause) -> Cause:
    """The row that caused the work item, or the text of `requested_by` if there is none."""
    below, requester = (work,), item.requested_by
    if key := item.delivery_id:
        return Cause(f"Delivery {key}", "delivery", key, detail=requester, below=below)
    if item.schedule:
        due = f"due {item.firing.due_at:%Y-%m-%d %H:%M:%S} UTC" if item.firing else ""
        name = f"Schedule {item.schedule.name}"
        return Cause(name, "schedule", item.schedule.pk, detail=due, below=below)
    if item.rule:
        return Cause(f"Rule {item.rule.name}", "rulestate", item.rule.pk, below=below)
    if key := item.rerun_of_id:
        return Cause(f"Run {key}", "run", key, detail=requester, below=below)
    if item.trigger == "message" and (sent := Message.objects.filter(work_item=item).first()):
        return Cause(f"Message {sent.pk}", "message", sent.pk, detail=requester, below=below)
    return Cause(f"Started by {requester}" if requester else item.trigger.capitalize(), below=below)


# --- the tree -------------------------------------------------------------------------------


def _runs(tree: _Tree, item: WorkItem) -> tuple[Cause, ...]:
    return tuple(_run(tree, run) for run in tree.runs[item.pk])


def _run(tree: _Tree, run: Run) -> Cause:
    which = [run.trigger_detail] if run.rerun else []
    which += [f"attempt {run.attempt}"] if run.attempt > 1 else []
    calls = (each for call in tree.calls[run.pk] for each in _call(tree, call))
    return Cause(
        f"{run.agent.name}, run {run.pk}",
        *("run", run.pk, run.state, ", ".join(which)),
        here=run.pk == tree.here,
        below=tuple(calls),
    )


def _call(tree: _Tree, call: AgentCall) -> tuple[Cause, ...]:
    """The runs of the called work item, or the work item itself if it has none."""
    item = call.work_item
    waiting = Cause(
        f"{call.agent.name}, work item {item.pk}", "workitem", item.pk, item.state, call.error
    )
    return _runs(tree, item) or (waiting,)
