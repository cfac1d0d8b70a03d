"""The end of a successful run and the start of the next one in its slot, in one statement.

lifecycle.py makes the same moves in eight statements, which on PostgreSQL cost more than a short
run. In all other cases, and on SQLite, the statement moves no row and lifecycle.py does the work.
"""

from dataclasses import replace
from datetime import datetime
from typing import Any

from agents_app.database import ENGINE, execute
from agents_app.models import LENT
from agents_app.runs.block_reasons import BLOCK_SQL, BLOCK_TABLES
from agents_app.runs.job import Ending, Job, new_secret, secret_hash

# All parts of the statement read the rows as they were when it began, but it may have waited for
# the lock on the agent since. Rows that decide are therefore locked, which reads them again, and
# a changed scale is left to lifecycle.py. Each part reads the part before it, which is the order
# of execution: the slot is free before it is taken again.
_HAND_OVER = f"""
WITH gate AS (
    SELECT a.scale, a.revision, a.timeout_seconds, a.name
    FROM {BLOCK_TABLES}
    WHERE a.id = %(agent)s AND {BLOCK_SQL} = '' AND t.scale IS NULL
        AND a.scale = (SELECT scale FROM drover_agent WHERE id = %(agent)s)
    FOR NO KEY UPDATE OF a
), mine AS (
    SELECT r.slot FROM drover_run r, gate
    WHERE r.id = %(run)s AND r.slot < gate.scale AND gate.scale >= (
        SELECT count(*) FROM drover_run WHERE agent_id = %(agent)s AND slot < %(lent)s)
), oldest AS (
    SELECT w.id FROM drover_work_item w, mine
    WHERE w.agent_id = %(agent)s AND w.state = 'queued' AND w.available_at <= %(now)s
    ORDER BY w.id LIMIT 1 FOR UPDATE OF w
), ended AS (
    UPDATE drover_run r SET state = 'succeeded', finished_at = %(now)s, error = '', slot = NULL,
        project_slot = NULL, exit_code = %(exit_code)s, pid = %(pid)s,
        sandbox = %(sandbox)s, output_bytes = %(output_bytes)s,
        output_cut_bytes = %(output_cut_bytes)s
    FROM mine, oldest WHERE r.id = %(run)s AND r.state = 'running' AND r.worker_id = %(worker)s
        AND r.signaled_at IS NULL AND r.borrowed_from_id IS NULL
        AND r.project_borrowed_from_id IS NULL
    RETURNING mine.slot
), settled AS (
    UPDATE drover_work_item w SET state = 'done', reason = '', finished_at = %(now)s
    FROM ended WHERE w.id = %(work)s AND w.state = 'admitted'
), admitted AS (
    UPDATE drover_work_item w SET state = 'admitted', attempts = w.attempts + 1
    FROM oldest, ended WHERE w.id = oldest.id
    RETURNING w.*, ended.slot
), started AS (
    INSERT INTO drover_run (tenant_id, agent_id, work_item_id, schedule_id, state, trigger,
        requested_by, slot, attempt, rerun, worker_id, created_at, started_at, deadline_at,
        trace_id, depth, parent_run_id, token_sha256, error, status_text, result_summary,
        tokens_in, tokens_out, tokens_cache, cost_usd, output_bytes, output_cut_bytes)
    SELECT a.tenant_id, a.agent_id, a.id, a.schedule_id, 'running', a.trigger, a.requested_by,
        a.slot, a.attempts, 0, %(worker)s, %(now)s, %(now)s,
        %(now)s + gate.timeout_seconds * interval '1 second', a.trace_id, a.depth,
        a.parent_run_id, %(token)s, '', '', '', 0, 0, 0, 0, 0, 0
    FROM admitted a, gate RETURNING id
), counted AS (
    UPDATE drover_schedule s SET run_count = s.run_count + 1, updated_at = %(now)s
    FROM admitted a, started WHERE s.id = a.schedule_id
), recorded AS (
    INSERT INTO drover_run_event (tenant_id, agent_id, run_id, name, at, detail)
    SELECT %(tenant)s, %(agent)s, event.run_id, event.name, %(now)s, ''
    FROM started, LATERAL (VALUES (%(run)s::bigint, 'run.succeeded'), (started.id, 'run.admitted'),
        (started.id, 'run.started')) AS event (run_id, name)
)
SELECT started.id, a.tenant_id, a.agent_id, a.id, a.schedule_id, a.trigger, a.attempts, 0,
    gate.revision, gate.timeout_seconds, a.prompt, a.context, a.requested_by, a.trace_id,
    a.depth, a.parent_run_id, gate.name, a.firing_id
FROM started, admitted a, gate"""  # noqa: S608


def hand_over(job: Job, ending: Ending, now: datetime, worker_id: int) -> Job | None:
    """The next job, already started by the same worker; None: no row was changed.

    Only on an engine that changes several tables in one statement.
    """
    if not ENGINE.writes_several_tables_at_once:
        return None
    secret = new_secret()
    values: dict[str, Any] = {
        "token": secret_hash(secret),
        "run": job.run_id,
        "work": job.work_item_id,
        "agent": job.agent_id,
        "tenant": job.tenant_id,
        "lent": LENT,
        "worker": worker_id,
        "now": now,
        "exit_code": ending.exit_code,
        "pid": ending.pid,
        "sandbox": ending.sandbox,
        "output_bytes": ending.output_bytes,
        "output_cut_bytes": ending.output_cut_bytes,
    }
    row = execute(_HAND_OVER, values).fetchone()
    return replace(Job(*row), secret=secret) if row else None
