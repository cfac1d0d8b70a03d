"""The form of a schedule: what people type, handed to the verbs, whose refusals are its errors."""

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

# Longer spans than a year mean nothing here, and very long ones are no timedelta.
LONGEST_SECONDS = 366 * 86_400
MOST_FAILURES = 1_000
BOUNDS = {
    "catch_up_window_seconds": (0, LONGEST_SECONDS),
    "jitter_percent": (0, edit.MOST_JITTER_PERCENT),
    "jitter_seconds": (0, LONGEST_SECONDS),
    "pause_after_failures": (0, MOST_FAILURES),
}
USUAL_OVERLAP = ("", "the usual: skip, but queue what fires only once")
# A refusal names no field; each of these words stands in those about one.
ABOUT = {"another name": "name", "jitter": "jitter_percent", "anchor": "anchor"}

# All that the fires depend on.
TRIGGER = ("text", "timezone", "anchor", "gap", "overlap_hour")


class WhenInput(UnfoldAdminTextInputWidget):  # type: ignore[misc]
    """Takes whatever says when, and has what it was understood as below it."""

    template_name = "drover/when_input.html"
    at_once = False

    class Media:
        css = {"all": ["drover/schedule.css"]}
        js = ["drover/when.js"]

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        more = {"aria-describedby": "dv-understood", "autocomplete": "off", "spellcheck": "false"}
        context: dict[str, Any] = super().get_context(name, value, {**(attrs or {}), **more})
        context["widget"] |= {"asks": TRIGGER, "at_once": self.at_once}
        return context


class ScheduleForm(forms.ModelForm):  # type: ignore[type-arg]
    class Meta:
        labels = {
            "anchor": "Interval counts from",
            "gap": "A time that the clocks leave out",
            "overlap_hour": "A time that the clocks bring twice",
            "overlap": "If it is still busy",
            "catch_up": "Catch up after downtime",
            "catch_up_window_seconds": "Catch up within (seconds)",
            "jitter_percent": "Jitter (percent)",
            "jitter_seconds": "Jitter (seconds)",
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "text" in self.fields:
            # Below it stands more than a line could say.
            self.fields["text"].required, self.fields["text"].help_text = True, ""
            # What is saved is shown above; what is new or was refused is shown at once.
            self.fields["text"].widget.at_once = self.is_bound or self.instance.pk is None
        if self.instance.pk is None:
            self._leave_open()

    def _leave_open(self) -> None:
        """What the verb finds for itself if nobody says it."""
        self.fields["name"].required = False
        self.fields["name"].help_text = "Empty: made from the text"
        overlap = self.fields["overlap"]
        assert isinstance(overlap, forms.ChoiceField)
        overlap.required, overlap.initial = False, ""
        self.initial.pop("overlap", None)
        overlap.choices = [USUAL_OVERLAP, *Schedule.Overlap.choices]

    def clean(self) -> dict[str, Any]:
        """The verb itself is asked what it would refuse."""
        if not self.errors:
            try:
                _rehearse(lambda: self.write("", utc_now()))
            except DroverError as error:
                self.add_error(self._field_of(error), str(error))
        return self.cleaned_data

    def _get_validation_exclusions(self) -> set[str]:
        """Whether a name is free the verb knows: a schedule that has ended gives it up."""
        return super()._get_validation_exclusions() | {"name"}  # type: ignore[misc, no-any-return]

    def write(self, by: str, now: datetime) -> Schedule:
        """Only what was edited is written: beat counts in the same row meanwhile."""
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
        about = (field for words, field in ABOUT.items() if words in str(error))
        field = column if column in self.fields else next(about, None)
        return field if field in self.fields else None


def _draft(values: dict[str, Any]) -> edit.Draft:
    known = {field.name: values[field.name] for field in fields(edit.Draft)}
    return edit.Draft(**known | {"overlap": values["overlap"] or None})


def _rehearse(act: Callable[[], object]) -> None:
    """Raises what the act would raise; what it writes is undone before anybody sees it."""
    with transaction.atomic():
        act()
        transaction.set_rollback(True)
