"""Errors of the API and their responses, all of the form {"error": {"code", "message", ...}}."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import structlog
from django.core.exceptions import SuspiciousOperation
from django.db import DatabaseError, DataError, IntegrityError
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError
from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

from agents_app.errors import DroverError, TriggerParseError

log = structlog.get_logger("drover.api")


UNAUTHORIZED = "missing or invalid bearer token"
NOTHING_HERE = "there is nothing at this address; /v1/docs lists the addresses"


class ErrorBody(BaseModel):
    model_config = ConfigDict(extra="allow")

    code: str = Field(description="For programs.")
    message: str = Field(description="For people: what is wrong, where, what to do.")


class Problem(BaseModel):
    error: ErrorBody


# The status codes that every operation may return besides its own.
ANY_PROBLEM = (400, 401, 403, 404, 409, 413, 429, 503)


def answers(model: Any, status: int = 200) -> dict[int, Any]:
    """The responses of an operation.

    Errors are exceptions, which the handlers turn into responses. A model for each of them would
    take half of the time that the gateway needs to start; `describe_problems` documents them.
    """
    return {status: model} | dict.fromkeys(ANY_PROBLEM)


def describe_problems(document: dict[str, Any]) -> None:
    """Add the form of errors to the OpenAPI document."""
    schema = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
    document["components"]["schemas"] |= {**schema.pop("$defs"), "Problem": schema}
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    for operations in document["paths"].values():
        for operation in operations.values():
            for status in ANY_PROBLEM:
                operation["responses"][status]["content"] = content


# --- errors of the gateway --------------------------------------------------------------------


class Invalid(DroverError):
    """A value in the request is not valid."""

    code = "invalid"


class Forbidden(DroverError):
    """The caller is known, but lacks the right."""

    code = "forbidden"
    http_status = 403


class TenantDisabled(Forbidden):
    code = "tenant_disabled"


class CsrfFailed(Forbidden):
    code = "csrf"


class TooMany(DroverError):
    """More requests than the rate limit of the caller permits."""

    code: ClassVar[str] = "rate_limited"
    http_status = 429
    permanent = False

    def __init__(self, retry_after_seconds: int) -> None:
        self.retry_after_seconds = retry_after_seconds
        super().__init__(f"too many requests: try again in {retry_after_seconds} s")


# --- errors in the fields of a request ------------------------------------------------------

# Plain words for some of pydantic's error types.
_WORDS = {"missing": "this field is required", "extra_forbidden": "unknown field"}
_SENTENCE = "sentence"


@dataclass(frozen=True, slots=True)
class FieldError:
    path: str
    message: str
    text: str


def sentence_error(text: str) -> PydanticCustomError:
    """A validation error whose text is a sentence: shown without the name of the field."""
    return PydanticCustomError(_SENTENCE, "{text}", {"text": text})


def field_errors(errors: Iterable[Mapping[str, Any]]) -> list[FieldError]:
    return [_field_error(error) for error in errors]


def _field_error(error: Mapping[str, Any]) -> FieldError:
    path = _path(error["loc"])
    message = _WORDS.get(error["type"]) or str(error["msg"]).removeprefix("Value error, ")
    is_sentence = error["type"] == _SENTENCE or not path
    return FieldError(path, message, message if is_sentence else f"{path}: {message}")


def _path(location: Iterable[str | int]) -> str:
    """Without the part of the request and without the name of the parameter for the body."""
    part, *names = [str(name) for name in location]
    if part == "body":
        names = names[1:]
    return ".".join(names)


# --- from errors to responses ---------------------------------------------------------------


def problem(status: int, code: str, message: str, **more: Any) -> HttpResponse:
    return JsonResponse({"error": {"code": code, "message": message, **more}}, status=status)


def add_handlers(api: NinjaAPI) -> None:
    for kind, handler in _HANDLERS.items():
        api.add_exception_handler(kind, handler)


def _refusal(_request: HttpRequest, error: DroverError) -> HttpResponse:
    more: dict[str, Any] = {}
    if isinstance(error, TriggerParseError):
        more = {"accepted": error.accepted, "position": error.position}
    response = problem(error.http_status, error.code, str(error), **more)
    if isinstance(error, TooMany):
        response["Retry-After"] = str(error.retry_after_seconds)
    return response


def _invalid(_request: HttpRequest, error: ValidationError) -> HttpResponse:
    errors = field_errors(error.errors)
    message = "; ".join(each.text for each in errors)
    listed = [{"field": each.path, "message": each.message} for each in errors]
    return problem(400, Invalid.code, message, fields=listed)


def _http_error(_request: HttpRequest, error: HttpError) -> HttpResponse:
    if error.status_code != 400:
        return problem(error.status_code, "error", str(error))
    # Raised by the parser: the body cannot be read.
    return problem(400, "bad_json", f"the body is not JSON in UTF-8: {error.__cause__ or error}")


def _unauthorized(_request: HttpRequest, _error: AuthenticationError) -> HttpResponse:
    response = problem(401, "unauthorized", UNAUTHORIZED)
    response["WWW-Authenticate"] = "Bearer"
    return response


def _not_found(_request: HttpRequest, _error: Http404) -> HttpResponse:
    return problem(404, "not_found", NOTHING_HERE)


def _unstorable(_request: HttpRequest, error: SuspiciousOperation | DataError) -> HttpResponse:
    return problem(400, Invalid.code, " ".join(str(error).split()))


def _conflict(_request: HttpRequest, error: IntegrityError) -> HttpResponse:
    log.info("api.conflict", error=str(error))
    return problem(
        409, "conflict", "another request changed the same object: read it and try again"
    )


def _unavailable(request: HttpRequest, error: DatabaseError) -> HttpResponse:
    log.warning("api.database_away", path=request.path, error=str(error))
    response = problem(503, "unavailable", "the database does not answer: try again")
    response["Retry-After"] = "1"
    return response


def _failed(request: HttpRequest, error: Exception) -> HttpResponse:
    log.error("api.failed", path=request.path, method=request.method, exc_info=error)
    return problem(500, "internal", "internal error: the log of the gateway has the details")


_HANDLERS: dict[type[Exception], Any] = {
    DroverError: _refusal,
    ValidationError: _invalid,
    HttpError: _http_error,
    AuthenticationError: _unauthorized,
    Http404: _not_found,
    SuspiciousOperation: _unstorable,
    DataError: _unstorable,
    IntegrityError: _conflict,
    DatabaseError: _unavailable,
    Exception: _failed,
}
