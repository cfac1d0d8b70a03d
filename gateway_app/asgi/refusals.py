"""What no database can hold is the asker's mistake, also where Django's admin takes it for ours."""

from django.core.exceptions import BadRequest
from django.db import DataError
from django.http import HttpRequest, HttpResponse
from django.utils.deprecation import MiddlewareMixin
from django.views.defaults import bad_request


class Refusals(MiddlewareMixin):
    """A number of thirty digits or a NUL, in a filter that somebody typed into the address."""

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        nul = isinstance(error, ValueError) and "NUL" in str(error)
        if nul or isinstance(error, OverflowError | DataError):
            return bad_request(request, BadRequest())
        return None
