"""The form of a payload that is only tried: for whom, with which headers, and its body."""

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

LONGEST_TRIED = 1_000_000
SOURCE, PROVIDER = "source", "provider"
_MONO = {"class": "dv-mono", "spellcheck": "false"}


def _choices() -> list[tuple[str, Any]]:
    sources = WebhookSource.objects.filter(removed_at__isnull=True).order_by("name")
    own = [(f"{SOURCE}:{s.pk}", f"{s.name} ({s.type})") for s in sources]
    every = [(f"{PROVIDER}:{name}", f"all of {name}") for name in PROVIDERS]
    return [*([("Sources", own)] if own else []), ("Providers", every)]


class TrialForm(forms.Form):
    target = forms.ChoiceField(
        label="Sent to",
        choices=_choices,
        widget=UnfoldAdminSelectWidget,
        help_text="A source, or all sources of a provider.",
    )
    headers = forms.CharField(
        required=False,
        max_length=20_000,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 4, **_MONO}),
        help_text="One a line, such as X-GitHub-Event: issues. Signatures are not checked.",
    )
    body = forms.CharField(
        max_length=LONGEST_TRIED,
        strip=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 14, **_MONO}),
        help_text="As it would be sent.",
    )

    def clean_headers(self) -> dict[str, str]:
        found = {}
        lines: str = self.cleaned_data["headers"]
        for number, line in enumerate(lines.splitlines(), start=1):
            name, colon, value = line.partition(":")
            if not line.strip():
                continue
            if not colon or not name.strip():
                raise forms.ValidationError(f"Line {number}: write NAME: VALUE.")
            found[name.strip().lower()] = value.strip()
        return found

    def clean(self) -> dict[str, Any]:
        """Found out here, so that what is wrong with the target is an error of the form."""
        cleaned = super().clean() or {}
        if not self.errors and cleaned["target"].startswith(SOURCE):
            try:
                cleaned["sources"] = [_source(int(cleaned["target"].partition(":")[2]))]
            except DroverError as error:
                self.add_error("target", str(error))
        return cleaned

    def trials(self, now: datetime) -> list[tuple[DryRun, str]]:
        """What would become of it, each with a hint if it was not understood."""
        target, headers = self.cleaned_data["target"], self.cleaned_data["headers"]
        body = self.cleaned_data["body"].encode("utf-8", "surrogatepass")
        if sources := self.cleaned_data.get("sources"):
            found = dry_run_delivery(sources, headers, body, now)
        else:
            found = dry_run_provider(target.partition(":")[2], headers, body, now)
        return [(trial, _hint(trial, headers)) for trial in found]


def _source(key: int) -> Any:
    row = WebhookSource.objects.filter(pk=key).first()
    if row is None:
        raise NotFound("that source is gone")
    source = read_source(row, ())
    if source is None:
        raise Refused(f"the source {row.name!r} cannot be used: its settings make no sense")
    return source


def _hint(trial: DryRun, headers: Mapping[str, str]) -> str:
    header = EVENT_HEADERS.get(trial.kind, "")
    if trial.reading.outcome == "ignored" and header and header not in headers:
        return f"{trial.kind} says in the header {header} which event it is: add it above."
    return ""


def form_of(asked: Mapping[str, str]) -> TrialForm:
    """Begun with what was stored of a delivery, without what proved who had sent it."""
    delivery, source = asked.get("delivery", ""), asked.get("source", "")
    found = Delivery.objects.filter(pk=delivery).first() if _is_key(delivery) else None
    if found is None or len(found.body) > LONGEST:
        return TrialForm(initial={"target": f"{SOURCE}:{source}"} if _is_key(source) else {})
    headers = headers_of(found).items()
    return TrialForm(
        initial={
            "target": f"{SOURCE}:{found.source_id}",
            "headers": "\n".join(f"{n}: {value}" for n, value in headers if value != HIDDEN),
            "body": as_text(bytes(found.body)),
        }
    )


def _is_key(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 16
