"""Simulated runs of schedules that wait for the end of a run: only durations, no processes."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial

from agents_app.database.transactions import in_transaction
from agents_app.models import Firing, Trigger, WorkItem
from agents_app.runs import schedule_states


class Runs:
    def __init__(self, agent_id: int, takes: Mapping[int, timedelta]) -> None:
        """`takes` is the duration of a run of each schedule."""
        self.agent_id = agent_id
        self.takes = takes
        self.unfinished: list[tuple[datetime, WorkItem]] = []

    def begin(self, moment: datetime) -> None:
        """Create a work item for each firing that was recorded at the moment."""
        fired = Firing.objects.filter(recorded_at=moment, schedule_id__in=self.takes)
        items = [self._item(firing) for firing in fired]
        if items:
            in_transaction(lambda: WorkItem.objects.bulk_create(items))
        self.unfinished += [(moment + self.takes[item.schedule_id or 0], item) for item in items]

    def _item(self, firing: Firing) -> WorkItem:
        return WorkItem(
            tenant_id=firing.tenant_id,
            agent_id=self.agent_id,
            state=WorkItem.State.ADMITTED,
            trigger=Trigger.SCHEDULE,
            schedule_id=firing.schedule_id,
            created_at=firing.recorded_at,
            available_at=firing.recorded_at,
        )

    def end(self, moment: datetime) -> None:
        """Finish the runs that have ended until the moment, each at its time."""
        over = [(at, item) for at, item in self.unfinished if at <= moment]
        self.unfinished = [(at, item) for at, item in self.unfinished if at > moment]
        if over:
            in_transaction(partial(_finish, over))


def _finish(over: list[tuple[datetime, WorkItem]]) -> None:
    for at, item in over:
        _finish_one(item, at)


def _finish_one(item: WorkItem, at: datetime) -> None:
    WorkItem.objects.filter(pk=item.pk).update(state=WorkItem.State.DONE, finished_at=at)
    schedule_states.settle_schedule(item.schedule_id, at, "")
