"""Measures one tick of rules that are all due, about agents that all run and print."""

import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

from agents_app.models import Agent, RuleState, Run, RunOutput, Tenant, Trigger, WorkItem
from agents_app.rules.engine.tick import evaluate_rules
from agents_app.rules.language.source import FILE_NAME

PIECES = 20
# One rule of each kind; half of the conditions hold.
RULES = (
    "every 1m if not alive({agent}) => summon {agent}",
    "every 1m if idle({agent}) > 1h => release {{idle}}",
    'every 1m if idle(any) > 1s => msg {agent} "{{idle_duration}}"',
    "every 1m if queue({agent}) > 3 => scale {agent} 2",
    "every 1m if failed({agent}) > 3 in 1h => pause {agent}",
    "at * * * * * if budget({agent}) > 80% => pause {agent}",
    'at * * * * * => msg {agent} "hello"',
    "every 1m if alive({agent}) and idle({agent}) > 1s => release {agent}",
    "every 1m => summon {agent}",
    "every 1m if alive({agent}) => resume {agent}",
)


def write(agents: int) -> None:
    now = datetime.now(UTC) - timedelta(hours=1)
    tenant = Tenant.objects.create(name="default", settings={"timezone": "UTC"})
    made = Agent.objects.bulk_create(
        Agent(tenant=tenant, name=f"agent{n}", budget={"tokens_per_day": 1000})
        for n in range(agents)
    )
    work = WorkItem.objects.bulk_create(
        WorkItem(
            tenant=tenant, agent=agent, state="admitted", trigger=Trigger.MANUAL, created_at=now,
            available_at=now,
        )
        for agent in made
    )  # fmt: skip
    runs = Run.objects.bulk_create(
        Run(
            tenant=tenant, agent=item.agent, work_item=item, state="running", slot=1,
            trigger=Trigger.MANUAL, created_at=now, started_at=now,
        )
        for item in work
    )  # fmt: skip
    RunOutput.objects.bulk_create(
        (
            RunOutput(tenant=tenant, run=run, seq=seq, stream=1, at=now, data=b"x" * 1000)
            for run in runs
            for seq in range(PIECES)
        ),
        batch_size=2000,
    )


def look(rules: int, agents: int, times: int) -> dict[str, float]:
    lines = [
        f"[rule{n}] " + RULES[n % len(RULES)].format(agent=f"agent{n % agents}")
        for n in range(rules)
    ]
    with tempfile.TemporaryDirectory() as directory:
        project = Path(directory)
        (project / FILE_NAME).write_text("\n".join(lines))
        now, taken = datetime.now(UTC), list[float]()
        evaluate_rules(now, project, _nobody)
        for _ in range(times):
            now += timedelta(seconds=60)
            began = time.perf_counter()
            fired = evaluate_rules(now, project, _nobody)
            taken.append(time.perf_counter() - began)
            assert fired >= rules * 0.4, f"only {fired} of {rules} fired"
            RuleState.objects.update(held_by="")
    return {"tick_ms": median(taken) * 1000}


def _nobody(*_: object) -> None:
    """Actions are not performed: they run on other threads in a real beat."""
