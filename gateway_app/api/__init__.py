"""The control API, /v1: one file per resource.

Belongs here: authentication, paging, errors and resources of the API.
Does not belong here: decisions; every operation calls a function of agents_app.
"""

from gateway_app.api.app import API
from gateway_app.api.views import api_urls

__all__ = ["API", "api_urls"]
