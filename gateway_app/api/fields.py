"""The types of values in requests and responses: text, numbers, times, bodies, filters."""

import math
from datetime import UTC, datetime
from typing import Annotated, Any

from django.http import HttpRequest
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializationInfo,
    SerializerFunctionWrapHandler,
    ValidationInfo,
    WrapSerializer,
    model_validator,
)

from agents_app.clock import iso
from agents_app.names import unknown_field
from gateway_app.access import sentence_error

# The end of the year 9999, the last time that Python can represent.
LAST_SECOND = 253_402_300_799
LARGEST_KEY = 2**63 - 1


def _storable(text: str) -> str:
    if "\0" in text:
        raise ValueError("the character NUL cannot be stored")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("half of a surrogate pair is not a character") from None
    return text


def _whole(value: Any) -> Any:
    """JSON has one type of number: 3.0 is 3."""
    return int(value) if type(value) is float and value.is_integer() else value


def _seconds_of_text(value: Any) -> Any:
    """Seconds of an ISO 8601 time with a time zone; numbers, also as text, unchanged."""
    if not isinstance(value, str) or _is_number(value):
        return value
    try:
        at = datetime.fromisoformat(value.upper()) if "T" in value.upper() else None
    except ValueError:
        at = None
    if at is None:
        raise ValueError("expected a time such as 2026-11-18T08:00:00Z, or seconds since 1970")
    if at.tzinfo is None:
        raise ValueError("a time needs its time zone, such as 2026-03-02T12:00:00Z")
    return at.timestamp()


def _is_number(text: str) -> bool:
    try:
        return text.isascii() and math.isfinite(float(text))
    except ValueError:
        return False


def _epoch_of_time(value: Any) -> Any:
    return epoch(value) if isinstance(value, datetime) else value


Text = Annotated[
    str, AfterValidator(_storable), Field(json_schema_extra={"pattern": "^[^\\u0000]*$"})
]
Whole = Annotated[int, BeforeValidator(_whole)]
Note = Annotated[Text, Field(max_length=500)]
Seconds = Annotated[float, Field(ge=0, le=LAST_SECOND, allow_inf_nan=False)]
SecondsOrTime = Annotated[
    Seconds, BeforeValidator(_seconds_of_text, json_schema_input_type=Seconds | datetime)
]
TIMES = "times"
ISO_TIMES = "iso"


def wants_iso_times(request: HttpRequest) -> bool:
    """Whether the query has `times=iso`; the default is `times=epoch`."""
    return request.GET.get(TIMES) == ISO_TIMES


def _as_asked(value: Any, render: SerializerFunctionWrapHandler, info: SerializationInfo) -> Any:
    request = (info.context or {}).get("request")
    if request is not None and isinstance(value, int | float) and wants_iso_times(request):
        return iso(moment(value))
    return render(value)


# A lambda, because the annotation of a return value would replace the type in OpenAPI.
_TIME = WrapSerializer(lambda value, render, info: _as_asked(value, render, info))
_EPOCH_TEXT = "Seconds since 1970 in UTC; with `?times=iso` ISO 8601 text."
Epoch = Annotated[int, BeforeValidator(_epoch_of_time), _TIME, Field(description=_EPOCH_TEXT)]
ExactEpoch = Annotated[float, _TIME, Field(description=_EPOCH_TEXT)]


class Payload(BaseModel):
    """The body of a request: only known fields, with exactly their types."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _only_known(cls, value: Any) -> Any:
        if isinstance(value, dict):
            refuse_unknown(value, set(cls.model_fields))
        return value


class Filters(BaseModel):
    """The query parameters of a request; unknown names are refused."""

    model_config = ConfigDict(frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _only_known(cls, value: Any, info: ValidationInfo) -> Any:
        request = (info.context or {}).get("request")
        if request is not None:
            refuse_unknown(request.GET, {*cls.model_fields, TIMES})
        return value


class Shape(BaseModel):
    """The body of a response, or a part of it."""

    model_config = ConfigDict(frozen=True)


def refuse_unknown(given: Any, known: set[str]) -> None:
    for name in given:
        if name not in known:
            raise sentence_error(f"{str(name)[:80]!r}: {unknown_field(str(name)[:80], known)}")


def utc_now() -> datetime:
    return datetime.now(UTC)


def moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def epoch(at: datetime) -> int:
    return int(at.timestamp())


def epoch_or_none(at: datetime | None) -> int | None:
    return None if at is None else epoch(at)
