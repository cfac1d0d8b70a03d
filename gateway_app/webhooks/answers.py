"""The responses to a webhook request; a success is sent only for a delivery that is stored."""

from typing import Any

from agents_app.webhooks import Receipt
from gateway_app.asgi import Answer, error_answer


def accepted(receipt: Receipt) -> Answer:
    content: dict[str, Any] = {
        "ok": True,
        "delivery": receipt.delivery,
        "matched": receipt.matched,
        "skipped": receipt.skipped,
    }
    return Answer(200, {**content, "duplicate": True} if receipt.duplicate else content)


def no_such_source() -> Answer:
    """The same whether the provider, the source or its tenant is not there."""
    return error_answer(404, "not_found", "there is no such webhook", hang_up=True)


def not_allowed() -> Answer:
    answer = error_answer(405, "method_not_allowed", "webhooks are sent with POST", hang_up=True)
    return Answer(answer.status, answer.content, ((b"allow", b"POST"),), hang_up=True)


def refused(late: bool) -> Answer:
    if late:
        return error_answer(401, "stale", "the signature is too old, or from the future")
    return error_answer(401, "bad_signature", "the signature is missing or wrong")
