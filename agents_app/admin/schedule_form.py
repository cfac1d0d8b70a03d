"""The form of a schedule; refusals of schedules.edit become errors of the form."""

from collections.abc import Callable
from dataclasses import fields
from datetime import datetime
from typing import Any

from django import forms
from django.db import transaction
from unfold.widgets import UnfoldAdminTextInputWidget

from agents_app.admin.base import utc_now
from agents_app.errors import DroverError, TriggerParseError
from agents_app.models import Schedule
from agents_app.schedules import edit

# Longer spans are not useful, and very long ones exceed timedelta.
LONGEST_SECONDS = 366 * 86_400
MOST_FAILURES = 1_000
BOUNDS = {
    "catch_up_window_seconds": (0, LONGEST_SECONDS),
    "jitter_percent": (0, edit.MOST_JITTER_PERCENT),
    "jitter_seconds": (0, LONGEST_SECONDS),
    "pause_after_failures": (0, MOST_FAILURES),
}
DEFAULT_OVERLAP = ("", "Default (skip; one-time schedules queue)")
# The field of a refusal, by a phrase of its message.
FIELD_BY_PHRASE = {"another name": "name", "jitter": "jitter_percent", "anchor": "anchor"}

# The fields that determine the fires.
TRIGGER = ("text", "timezone", "anchor", "gap", "overlap_hour")


class WhenInput(UnfoldAdminTextInputWidget):  # type: ignore[misc]
    """The input for the trigger, with a preview of the next fires below."""

    template_name = "drover/when_input.html"
    preview_on_load = False

    class Media:
        css = {"all": ["drover/schedule.css"]}
        js = ["drover/when.js"]

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        more = {"aria-describedby": "dv-form-preview", "autocomplete": "off", "spellcheck": "false"}
        context: dict[str, Any] = super().get_context(name, value, {**(attrs or {}), **more})
        context["widget"] |= {"preview_fields": TRIGGER, "preview_on_load": self.preview_on_load}
        return context


class ScheduleForm(forms.ModelForm):  # type: ignore[type-arg]
    class Meta:
        labels = {
            "anchor": "Interval starts at",
            "gap": "If the time is skipped (daylight saving starts)",
            "overlap_hour": "If the time occurs twice (daylight saving ends)",
            "overlap": "If the previous run is unfinished",
            "catch_up": "After downtime",
            "catch_up_window_seconds": "Catch up within (seconds)",
            "jitter_percent": "Jitter (percent)",
            "jitter_seconds": "Jitter (seconds)",
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "text" in self.fields:
            # The preview below the field replaces the help text.
            self.fields["text"].required, self.fields["text"].help_text = True, ""
            # The page of a saved schedule shows its fires already.
            self.fields["text"].widget.preview_on_load = self.is_bound or self.instance.pk is None
        if self.instance.pk is None:
            self._allow_defaults()

    def _allow_defaults(self) -> None:
        """Name and overlap may be empty: schedules.edit chooses them."""
        self.fields["name"].required = False
        self.fields["name"].help_text = "Generated from the schedule if empty"
        overlap = self.fields["overlap"]
        assert isinstance(overlap, forms.ChoiceField)
        overlap.required, overlap.initial = False, ""
        self.initial.pop("overlap", None)
        overlap.choices = [DEFAULT_OVERLAP, *Schedule.Overlap.choices]

    def clean(self) -> dict[str, Any]:
        """Validates by writing in a transaction that is rolled back."""
        if not self.errors:
            try:
                _check_write(lambda: self.write("", utc_now()))
            except DroverError as error:
                self.add_error(self._field_of(error), str(error))
        return self.cleaned_data

    def _get_validation_exclusions(self) -> set[str]:
        """schedules.edit checks the name: an ended schedule releases it."""
        return super()._get_validation_exclusions() | {"name"}  # type: ignore[misc, no-any-return]

    def write(self, by: str, now: datetime) -> Schedule:
        """Writes only edited columns: beat updates counters of the same row concurrently."""
        values = self.cleaned_data
        if self.instance.pk is None:
            return edit.create(values["agent"], _draft(values), by, now)
        changes = {name: values[name] for name in self.changed_data}
        schedule = Schedule.objects.get(pk=self.instance.pk)
        return edit.edit(schedule, changes, by, now) if changes else schedule

    def _field_of(self, error: DroverError) -> str | None:
        if isinstance(error, TriggerParseError):
            return "text" if error.accepted else "timezone"
        column = str(error).partition(":")[0]
        matching = (field for words, field in FIELD_BY_PHRASE.items() if words in str(error))
        field = column if column in self.fields else next(matching, None)
        return field if field in self.fields else None


def _draft(values: dict[str, Any]) -> edit.Draft:
    known = {field.name: values[field.name] for field in fields(edit.Draft)}
    return edit.Draft(**known | {"overlap": values["overlap"] or None})


def _check_write(write: Callable[[], object]) -> None:
    """Raises the errors of `write`; its changes are rolled back."""
    with transaction.atomic():
        write()
        transaction.set_rollback(True)
