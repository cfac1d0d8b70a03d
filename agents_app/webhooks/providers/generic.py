"""The generic provider: signature header, format and path of the event are options."""

from datetime import datetime
from typing import Any

from agents_app.webhooks.providers.context import Context
from agents_app.webhooks.providers.filters import filter_on
from agents_app.webhooks.providers.options import GenericOptions
from agents_app.webhooks.providers.provider import Provider, id_in_header
from agents_app.webhooks.providers.reading import as_text, iso, text
from agents_app.webhooks.providers.signing import Headers


def generic(options: GenericOptions) -> Provider:
    def parse(headers: Headers, payload: Any, received_at: datetime) -> Context | None:
        del headers
        event = text(payload, *options.event_path)
        if not event:
            return None
        return Context(
            source="generic",
            event=event,
            title=event,
            body=as_text(payload),
            timestamp=iso(received_at),
        )

    return Provider(
        name="generic",
        verify=options.verify,
        delivery_id=id_in_header(options.delivery_header),
        signs_body=not options.secret_in_path,
        parse=parse,
        filters={"events": filter_on("event")},
    )


GENERIC = generic(GenericOptions())
