"""Middleware that answers 400 if a value in the request cannot be stored in the database.

Django's admin would answer 500, for example for a filter in the address."""

from django.core.exceptions import BadRequest
from django.db import DataError
from django.http import HttpRequest, HttpResponse
from django.utils.deprecation import MiddlewareMixin
from django.views.defaults import bad_request


class InvalidValueMiddleware(MiddlewareMixin):
    """Handles numbers that are too large for a column, and text with a NUL."""

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        nul = isinstance(error, ValueError) and "NUL" in str(error)
        if nul or isinstance(error, OverflowError | DataError):
            return bad_request(request, BadRequest())
        return None
