"""The responses to a webhook request; a success is sent only for a delivery that is stored."""

from agents_app.webhooks import Receipt
from gateway_app.asgi import RETRY_SECONDS, GatewayResponse, error_response, retry_after


def accepted(receipt: Receipt) -> GatewayResponse:
    content = {
        "ok": True,
        "delivery": receipt.delivery,
        "matched": receipt.matched,
        "skipped": receipt.skipped,
    }
    return GatewayResponse({**content, "duplicate": True} if receipt.duplicate else content)


def no_such_source() -> GatewayResponse:
    """The same response whether the provider, the source or its tenant does not exist."""
    return error_response(
        404,
        "not_found",
        "there is no such webhook source: check the address",
        close_connection=True,
    )


def method_not_allowed() -> GatewayResponse:
    return error_response(
        405,
        "method_not_allowed",
        "webhooks are sent with POST",
        {"allow": "POST"},
        close_connection=True,
    )


def refused(stale: bool) -> GatewayResponse:
    if stale:
        message = "the time of the signature is too old or in the future: check the sender's clock"
        return error_response(401, "stale", message)
    message = "the signature is missing or wrong: check the secret of the webhook source"
    return error_response(401, "bad_signature", message)


def unavailable() -> GatewayResponse:
    message = "the delivery could not be stored: send it again"
    return error_response(503, "unavailable", message, retry_after(RETRY_SECONDS))
