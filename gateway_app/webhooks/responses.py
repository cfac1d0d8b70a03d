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


def no_such_address() -> GatewayResponse:
    """For a path that cannot be that of a source."""
    message = "there is nothing at this address: use /webhooks/PROVIDER[/SOURCE]"
    return error_response(404, "not_found", message, close_connection=True)


def method_not_allowed() -> GatewayResponse:
    return error_response(
        405,
        "method_not_allowed",
        "webhooks are sent with POST",
        {"allow": "POST"},
        close_connection=True,
    )


def refused(stale: bool) -> GatewayResponse:
    """The same response for a wrong signature and for a source that does not exist: a client
    without a secret must not learn which sources there are."""
    if stale:
        message = "the time of the signature is too old or in the future: check the sender's clock"
        return error_response(401, "stale", message)
    message = (
        "the signature is missing or wrong, or there is no such webhook source: check the address "
        "and the secret"
    )
    return error_response(401, "bad_signature", message)


def foreign_origin() -> GatewayResponse:
    message = (
        "this source accepts unsigned requests for this installation's own hosts only, and none of "
        "another site: give it a secret, or add the host to DROVER_ALLOWED_HOSTS"
    )
    return error_response(403, "foreign_origin", message)


def too_many(seconds: int) -> GatewayResponse:
    message = f"too many deliveries of this source: try again in {seconds} s"
    return error_response(429, "rate_limited", message, retry_after(seconds))


def too_many_wrong_signatures(seconds: int, *, unread: bool) -> GatewayResponse:
    """`unread`: nothing of the body was read, and nothing is."""
    message = (
        f"too many requests with a wrong signature from your address: try again in {seconds} s, or "
        "send to the address with the name of the source, /webhooks/PROVIDER/SOURCE"
    )
    wait = retry_after(seconds)
    return error_response(429, "rate_limited", message, wait, close_connection=unread)


def unavailable() -> GatewayResponse:
    message = "the delivery could not be stored: send it again"
    return error_response(503, "unavailable", message, retry_after(RETRY_SECONDS))
