"""The form that tests a payload against the filters of agents without storing it."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django import forms
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextareaWidget

from agents_app.admin.delivery_body import LONGEST
from agents_app.errors import DroverError, NotFound, Refused
from agents_app.models import Delivery, WebhookSource
from agents_app.text import as_text
from agents_app.webhooks import (
    EVENT_HEADERS,
    DryRun,
    dry_run_delivery,
    dry_run_provider,
    headers_of,
    read_source,
)
from agents_app.webhooks.providers import HIDDEN, PROVIDERS

LONGEST_BODY = 1_000_000
SOURCE, PROVIDER = "source", "provider"
_MONO = {"class": "dv-mono", "spellcheck": "false"}


def _choices() -> list[tuple[str, Any]]:
    sources = WebhookSource.objects.filter(removed_at__isnull=True).order_by("name")
    own = [(f"{SOURCE}:{s.pk}", f"{s.name} ({s.type})") for s in sources]
    every = [(f"{PROVIDER}:{name}", f"all sources of {name}") for name in PROVIDERS]
    return [*([("Sources", own)] if own else []), ("Providers", every)]


class PayloadTestForm(forms.Form):
    target = forms.ChoiceField(
        label="Source",
        choices=_choices,
        widget=UnfoldAdminSelectWidget,
        help_text="One source, or all sources of a provider.",
    )
    headers = forms.CharField(
        required=False,
        max_length=20_000,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 4, **_MONO}),
        help_text="One per line, for example X-GitHub-Event: issues. Signatures are not checked.",
    )
    body = forms.CharField(
        max_length=LONGEST_BODY,
        strip=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 14, **_MONO}),
        help_text="The request body as the sender would send it.",
    )

    def clean_headers(self) -> dict[str, str]:
        found = {}
        lines: str = self.cleaned_data["headers"]
        for number, line in enumerate(lines.splitlines(), start=1):
            name, colon, value = line.partition(":")
            if not line.strip():
                continue
            if not colon or not name.strip():
                raise forms.ValidationError(f"Line {number}: expected NAME: VALUE.")
            found[name.strip().lower()] = value.strip()
        return found

    def clean(self) -> dict[str, Any]:
        """Reads the source here, so that a problem with it is an error of the form."""
        cleaned = super().clean() or {}
        if not self.errors and cleaned["target"].startswith(SOURCE):
            try:
                cleaned["sources"] = [_source(int(cleaned["target"].partition(":")[2]))]
            except DroverError as error:
                self.add_error("target", str(error))
        return cleaned

    def results(self, now: datetime) -> list[tuple[DryRun, str]]:
        """The result for each source, with a hint if the payload was ignored."""
        target, headers = self.cleaned_data["target"], self.cleaned_data["headers"]
        body = self.cleaned_data["body"].encode("utf-8", "surrogatepass")
        if sources := self.cleaned_data.get("sources"):
            found = dry_run_delivery(sources, headers, body, now)
        else:
            found = dry_run_provider(target.partition(":")[2], headers, body, now)
        return [(result, _hint(result, headers)) for result in found]


def _source(key: int) -> Any:
    row = WebhookSource.objects.filter(pk=key).first()
    if row is None:
        raise NotFound("the source was removed")
    source = read_source(row, ())
    if source is None:
        raise Refused(f"the settings of the source {row.name!r} are invalid")
    return source


def _hint(result: DryRun, headers: Mapping[str, str]) -> str:
    header = EVENT_HEADERS.get(result.kind, "")
    if result.match.outcome == "ignored" and header and header not in headers:
        return f"{result.kind} names the event in the header {header}: add it to the headers."
    return ""


def form_of(query: Mapping[str, str]) -> PayloadTestForm:
    """The form, filled with a stored delivery without its signature headers."""
    delivery, source = query.get("delivery", ""), query.get("source", "")
    found = Delivery.objects.filter(pk=delivery).first() if _is_key(delivery) else None
    if found is None or len(found.body) > LONGEST:
        return PayloadTestForm(initial={"target": f"{SOURCE}:{source}"} if _is_key(source) else {})
    headers = headers_of(found).items()
    return PayloadTestForm(
        initial={
            "target": f"{SOURCE}:{found.source_id}",
            "headers": "\n".join(f"{n}: {value}" for n, value in headers if value != HIDDEN),
            "body": as_text(bytes(found.body)),
        }
    )


def _is_key(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 16
