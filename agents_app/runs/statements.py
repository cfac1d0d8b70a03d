"""The SQL statements of lifecycle.py."""

from agents_app.database import ENGINE

# queued --> admitted, for the oldest work item that is due.
ADMIT_OLDEST = """
UPDATE drover_work_item SET state = 'admitted', attempts = attempts + 1
WHERE state = 'queued' AND id = (
    SELECT id FROM drover_work_item
    WHERE agent_id = %s AND state = 'queued' AND available_at <= %s ORDER BY id LIMIT 1)
RETURNING 0, tenant_id, agent_id, id, schedule_id, trigger, attempts, 0, 0, 0.0, prompt, context,
    requested_by, trace_id, depth, parent_run_id, '', firing_id"""

# queued --> admitted, for a work item that was called and runs in a lent slot.
ADMIT_CALLED = """
UPDATE drover_work_item SET state = 'admitted', attempts = attempts + 1
WHERE id = %s AND state = 'queued'
RETURNING 0, tenant_id, agent_id, id, schedule_id, trigger, attempts, 0, 0, 0.0, prompt, context,
    requested_by, trace_id, depth, parent_run_id, '', firing_id"""

PENDING = """
SELECT r.id, r.tenant_id, r.agent_id, r.work_item_id, r.schedule_id, r.trigger, r.attempt, r.rerun,
       a.revision, a.timeout_seconds, w.prompt, w.context, r.requested_by, r.trace_id,
       r.depth, r.parent_run_id, a.name, w.firing_id
FROM drover_run r JOIN drover_agent a ON a.id = r.agent_id
     JOIN drover_work_item w ON w.id = r.work_item_id
WHERE r.id = %s AND r.state = 'pending'
      AND EXISTS (SELECT 1 FROM drover_worker v WHERE v.id = %s AND v.ended_at IS NULL)"""

INSERT_RUN = """
INSERT INTO drover_run (tenant_id, agent_id, work_item_id, schedule_id, state, trigger,
    requested_by, slot, project_slot, attempt, rerun, worker_id, created_at, hinted_at,
    started_at, deadline_at, trace_id, depth, parent_run_id, token_sha256, error, status_text,
    result_summary, tokens_in, tokens_out, tokens_cache, cost_usd, output_bytes, output_cut_bytes)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, '', '', '',
    0, 0, 0, 0, 0, 0)
RETURNING id"""

COUNT_RUNS = "UPDATE drover_schedule SET run_count = run_count + %s, updated_at = %s WHERE id = %s"

HELD_BY_RUN = """
SELECT exit_signal, rerun_requested, signaled_at IS NOT NULL, slot >= 1000000000
    OR project_slot >= 1000000000 OR borrowed_from_id IS NOT NULL
    OR project_borrowed_from_id IS NOT NULL
FROM drover_run WHERE id = %s AND (signaled_at IS NOT NULL OR borrowed_from_id IS NOT NULL
    OR project_borrowed_from_id IS NOT NULL)"""

END_CALLS = """
UPDATE drover_agent_call SET ended_at = %s, error = %s
WHERE caller_run_id = %s AND ended_at IS NULL AND work_item_id IN (
    SELECT id FROM drover_work_item WHERE state IN ('queued', 'admitted'))"""

_WORK_OF_ENDED_CALLS = """
SELECT w.id FROM drover_work_item w JOIN drover_agent_call c ON c.work_item_id = w.id
WHERE c.caller_run_id = %s AND c.ended_at IS NOT NULL AND w.state = 'queued'"""
LOCK_WORK_OF_ENDED_CALLS = _WORK_OF_ENDED_CALLS + ENGINE.row_lock_skipping_locked("w")

SCHEDULE_OF = "SELECT schedule_id FROM drover_work_item WHERE id = %s AND schedule_id IS NOT NULL"

RELEASE_LOCKS = "DELETE FROM drover_resource_lock WHERE run_id = %s"

DELETE_LOCK_WAITS = "DELETE FROM drover_lock_wait WHERE run_id = %s"
