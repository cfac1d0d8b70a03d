"""/v1/rules: the state of the rules in scheduler.rules, a dry run, also of an edit, and silence."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.http import HttpRequest
from ninja import Router
from pydantic import Field

from agents_app.models import RuleBook
from agents_app.rules.engine import (
    book_of,
    dry_run_rules,
    end_silence,
    indicator,
    rule_lines,
    silence_as_dict,
    source_of,
    start_silence,
)
from agents_app.rules.language import parse_source, source_of_text
from gateway_app.access import TO_OPERATE_RULES, TO_READ_RULES, Invalid, answers, caller_of
from gateway_app.api.fields import (
    Epoch,
    Payload,
    Seconds,
    Shape,
    epoch_or_none,
    moment,
    utc_now,
)

router = Router(tags=["rules"])


class RuleErrorShape(Shape):
    """A line that is not a valid rule."""

    code: str
    line: int = Field(description="Counted from 1; 0: the whole file cannot be read.")
    column: int
    problem: str
    expected: str
    raw: str = Field(description="The beginning of the line.")


class SilenceShape(Shape):
    silent: bool
    since: Epoch | None
    until: Epoch | None = Field(description="null: until it is ended.")
    by: str


class RuleShape(Shape):
    name: str
    line: int
    trigger: str
    condition: str
    action: str
    status: str = Field(description="waiting, ok, skip, run, backoff or abandoned.")
    reason: str
    failures: int = Field(description="In a row.")
    backoff_until: Epoch | None
    evaluated_at: Epoch | None
    fired_at: Epoch | None
    next_due_at: Epoch | None
    exit_code: int | None = Field(description="Of the last command that the rule ran.")
    tail: str = Field(description="The last lines of that command.")


class RulesShape(Shape):
    rules: list[RuleShape]
    errors: list[RuleErrorShape]
    loaded_at: Epoch | None
    disabled: bool = Field(description="Evaluating the rules failed repeatedly.")
    disabled_reason: str
    silence: SilenceShape
    indicator: str = Field(
        description="`SCH 3 !1`: three rules, and one rule in backoff or line with errors."
    )


class RuleTestShape(Shape):
    name: str
    line: int
    fires: bool = Field(description="At the next evaluation, if nothing changes.")
    why_not: list[str]
    due_at: Epoch
    condition: bool
    because: str
    warnings: list[str]


class RulesTestShape(Shape):
    ok: bool = Field(description="Every line is a rule, a comment or blank.")
    rules: list[RuleTestShape]
    errors: list[RuleErrorShape]


class RulesTestRequest(Payload):
    text: str | None = Field(default=None, description="The text of an edit; null: the file.")


class SilenceRequest(Payload):
    until: Seconds | None = Field(default=None, description="null: until it is ended.")
    seconds: Seconds | None = Field(default=None, description="From now, instead of `until`.")


TEST_FILE = RulesTestRequest()
WITHOUT_END = SilenceRequest()


@router.get("/rules", response=answers(RulesShape), auth=TO_READ_RULES)
def list_rules(request: HttpRequest) -> RulesShape:
    """In the order of the file, in which they are evaluated every ten seconds."""
    tenant = caller_of(request).tenant
    book = book_of(tenant)
    return RulesShape(
        rules=[RuleShape.model_validate(line.as_dict) for line in rule_lines(tenant)],
        errors=[_error(error) for error in book.errors],
        loaded_at=epoch_or_none(book.loaded_at),
        disabled=book.disabled_at is not None,
        disabled_reason=book.crash if book.disabled_at else "",
        silence=_silence(book, utc_now()),
        indicator=indicator(tenant.name).text,
    )


@router.post("/rules/test", response=answers(RulesTestShape), auth=TO_READ_RULES)
def test_rules(request: HttpRequest, body: RulesTestRequest = TEST_FILE) -> RulesTestShape:
    """Which rules would fire now, and why not; nothing is done, and an edit is not saved."""
    tenant = caller_of(request).tenant
    source = source_of(tenant) if body.text is None else source_of_text(_bytes(body.text))
    results = dry_run_rules(tenant, parse_source(source).rules, utc_now())
    return RulesTestShape(
        ok=not source.errors,
        rules=[RuleTestShape.model_validate(result.as_dict) for result in results],
        errors=[_error(error) for error in source.errors],
    )


@router.get("/rules/silence", response=answers(SilenceShape), auth=TO_READ_RULES)
def show_silence(request: HttpRequest) -> SilenceShape:
    return _silence(book_of(caller_of(request).tenant), utc_now())


@router.post("/rules/silence", response=answers(SilenceShape), auth=TO_OPERATE_RULES)
def silence_rules(request: HttpRequest, body: SilenceRequest = WITHOUT_END) -> SilenceShape:
    """No `msg` is sent until the silence ends; other actions continue. Survives restarts."""
    caller, now = caller_of(request), utc_now()
    return _silence(start_silence(caller.tenant, caller.by, now, _end(body, now)), now)


@router.delete("/rules/silence", response=answers(SilenceShape), auth=TO_OPERATE_RULES)
def end_silence_of_rules(request: HttpRequest) -> SilenceShape:
    """Messages that were suppressed are not sent later."""
    caller, now = caller_of(request), utc_now()
    end_silence(caller.tenant, caller.by, now)
    return _silence(book_of(caller.tenant), now)


def _bytes(text: str) -> bytes:
    """JSON may contain lone surrogates: they are an error in their line, as in a file."""
    return text.encode("utf-8", "surrogatepass")


def _end(body: SilenceRequest, now: datetime) -> datetime | None:
    if body.until is not None and body.seconds is not None:
        raise Invalid("until and seconds exclude each other: send one of them")
    if body.seconds is not None:
        try:
            return now + timedelta(seconds=body.seconds)
        except OverflowError:
            raise Invalid("seconds: the silence would end after the year 9999") from None
    return None if body.until is None else moment(body.until)


def _error(error: Mapping[str, Any]) -> RuleErrorShape:
    return RuleErrorShape(**error)


def _silence(book: RuleBook, now: datetime) -> SilenceShape:
    return SilenceShape.model_validate(silence_as_dict(book, now))
