"""The end of a claim: the outcome of its work is reported, and the item finished or released."""

from datetime import datetime

import structlog

from agents_app.conf import CONF
from agents_app.models import Run, WorkClaim, WorkItem
from agents_app.work_sources import claims
from agents_app.work_sources.kinds import (
    ApiError,
    ItemOutcome,
    ItemReport,
    SourceClient,
    WorkSourceError,
    read_settings,
)
from agents_app.work_sources.texts import ReportedRun, report_text

log = structlog.get_logger("drover.work_sources")
INTERRUPTED = "Drover was interrupted before the work began"
# These ends of a run say nothing about the item: its attempts are not counted.
UNCOUNTED = frozenset({"", Run.State.STOPPED, Run.State.PENDING})
GONE = frozenset({404, 410})
# About two hours: the credential may get its right back.
TRIES_OF_GONE_ITEMS = 20
Ended = WorkClaim.Outcome


def report_claim(client: SourceClient, claim: WorkClaim, now: datetime) -> None:
    """Report the end of a claim to its source; after an error it is tried again later."""
    claims.begin_try(claim, now)
    try:
        outcome, failed = _report(client, claim)
    except WorkSourceError as error:
        log.warning("claim.report_failed", claim_id=claim.pk, error=str(error))
        if _is_gone(error) and claim.tries >= TRIES_OF_GONE_ITEMS:
            claims.end_claim(claim, Ended.RELEASED, now, str(error))
            return
        claims.postpone(claim, error, now)
        if isinstance(error, ApiError) and error.rate_limited:
            raise  # the other claims would be refused, too
        return
    claims.end_claim(claim, outcome, now, failed=failed)


def _is_gone(error: WorkSourceError) -> bool:
    """Whether the item was deleted, or the credential has lost the right to see it."""
    return isinstance(error, ApiError) and error.status in GONE


def _report(client: SourceClient, claim: WorkClaim) -> tuple[str, bool]:
    """The outcome of the claim, and whether its work has failed."""
    item = claim.work_item
    if claim.stage == WorkClaim.Stage.CLAIMING:
        client.release(claim.item_id, _item_report(claim, "released", _summary(claim, None)))
        return Ended.RELEASED, False
    run = item.runs.order_by("-id").first() if item else None
    summary = _summary(claim, run)
    if item is not None and item.state == WorkItem.State.DONE:
        client.complete(claim.item_id, _item_report(claim, "success", summary))
        return Ended.SUCCEEDED, False
    failed = summary.state not in UNCOUNTED
    if failed and claim.failed_attempts + 1 >= _max_attempts(claim):
        client.complete(claim.item_id, _item_report(claim, "failure", summary))
        return Ended.FAILED, True
    client.release(claim.item_id, _item_report(claim, "released", summary))
    return Ended.RELEASED, failed


def _name(claim: WorkClaim) -> str:
    return claim.agent.name


def _max_attempts(claim: WorkClaim) -> int:
    _, settings = read_settings(claim.source.settings)
    return int(settings.max_attempts)


def _item_report(claim: WorkClaim, outcome: ItemOutcome, run: ReportedRun) -> ItemReport:
    again = claim.tries > 0
    interrupted = claim.stage == WorkClaim.Stage.CLAIMING
    reason = INTERRUPTED if interrupted else _reason(claim, run)
    return ItemReport(
        mark=claims.mark_of(claim, again=again or interrupted),
        outcome=outcome,
        text=report_text(outcome, run, reason),
        again=again,
        interrupted=interrupted,
    )


def _reason(claim: WorkClaim, run: ReportedRun) -> str:
    return run.error or (claim.work_item.reason if claim.work_item else "") or run.state


def _summary(claim: WorkClaim, run: Run | None) -> ReportedRun:
    if run is None:
        return ReportedRun(agent=_name(claim))
    tokens = run.tokens_in + run.tokens_out + run.tokens_cache
    return ReportedRun(
        agent=_name(claim),
        run_id=run.pk,
        state=str(run.state),
        text=run.return_value or run.result_summary,
        error=run.error,
        cost_usd=float(run.cost_usd),
        tokens=tokens,
        url=f"{CONF.public_url}/admin/runs/{run.pk}/" if CONF.public_url else "",
    )
