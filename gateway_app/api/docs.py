"""The pages at /v1/docs: Swagger UI from the installed package, without other hosts."""

import json
from mimetypes import guess_type
from pathlib import Path
from typing import Any

import ninja
from django.http import Http404, HttpRequest, HttpResponse
from django.middleware.csrf import get_token
from django.templatetags.static import static
from django.utils.html import format_html
from django.utils.safestring import mark_safe
from django.views.decorators.http import require_safe
from ninja import NinjaAPI, Swagger

_FILES = Path(ninja.__file__).parent / "static" / "ninja"
_NAMES = frozenset({"swagger-ui.css", "swagger-ui-bundle.js", "swagger-ui-init.js"})
# No inline script, so that a strict content security policy is possible.
_PAGE = """<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>{title}</title>
<link rel="icon" type="image/svg+xml" href="{icon}">
<link rel="stylesheet" href="docs/swagger-ui.css"></head>
<body data-csrf-token="{token}" data-api-csrf="true">
<script type="application/json" id="swagger-settings">{settings}</script>
<div id="swagger-ui"></div>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/swagger-ui-init.js"></script>
</body>
</html>
"""


class SelfHosted(Swagger):
    """Swagger UI without scripts or styles from other hosts."""

    def render_page(self, request: HttpRequest, api: NinjaAPI, **kwargs: Any) -> HttpResponse:
        settings = {**self.settings, "url": self.get_openapi_url(api, kwargs)}
        page = format_html(
            _PAGE,
            title=api.title,
            icon=static("drover/icon.svg"),
            token=get_token(request),
            settings=mark_safe(json.dumps(settings).replace("<", "\\u003c")),  # noqa: S308
        )
        return HttpResponse(page)


@require_safe
def asset(_request: HttpRequest, name: str) -> HttpResponse:
    if name not in _NAMES:
        raise Http404
    kind = guess_type(name)[0] or "application/octet-stream"
    response = HttpResponse((_FILES / name).read_bytes(), content_type=kind)
    response["Cache-Control"] = "public, max-age=86400"
    return response
