"""What the pages of all tables share: rows are read, and people act on them through verbs."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import redirect
from django.urls import URLPattern, path, reverse
from django.utils.http import url_has_allowed_host_and_scheme
from unfold.admin import ModelAdmin

from agents_app.admin.empty_lists import why_empty
from agents_app.admin.show import page_of
from agents_app.errors import DroverError

MOST_MESSAGES = 5


def utc_now() -> datetime:
    return datetime.now(UTC)


def may_see(request: HttpRequest, noun: str) -> bool:
    return any(request.user.has_perm(f"agents_app.{may}_{noun}") for may in ("view", "change"))


@dataclass(frozen=True, slots=True)
class Act:
    """Who does it, when, and what they wrote to it."""

    by: str
    now: datetime
    text: str = ""
    until: str = ""

    @property
    def note(self) -> str:
        """As much of it as the columns for a reason hold."""
        return self.text[:500]


@dataclass(frozen=True, slots=True)
class Verb:
    """A button on a row's page and an action in the list; `do` answers with a sentence."""

    name: str
    label: str
    icon: str
    do: Callable[[Any, Act], str]
    fits: Callable[[Any], bool] = lambda _row: True
    asks: str = ""
    asks_until: str = ""
    danger: bool = False
    # What will happen, for people who hesitate.
    effect: str = ""
    # Whether it can be chosen for several rows at once.
    in_list: bool = True


class DroverAdmin(ModelAdmin):  # type: ignore[misc]
    """Acting needs the permission to change, also where no column can be edited."""

    verbs: tuple[Verb, ...] = ()
    page_template = ""
    change_form_outer_before_template = "drover/page.html"
    change_list_template = "drover/change_list.html"
    show_full_result_count = False
    list_per_page = 50

    def __init__(self, model: type[Model], admin_site: admin.AdminSite) -> None:
        self.actions = [_list_action(verb) for verb in self.verbs if verb.in_list]
        super().__init__(model, admin_site)

    def has_act_permission(self, request: HttpRequest) -> bool:
        options = self.opts
        return request.user.has_perm(f"{options.app_label}.change_{options.model_name}")

    def has_delete_permission(self, _request: HttpRequest, _obj: Model | None = None) -> bool:
        """History is removed by retention, and what people no longer want is paused."""
        return False

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.act_view)
        name = f"{self.opts.app_label}_{self.opts.model_name}_act"
        return [path("<int:object_id>/act/<slug:verb_name>/", view, name=name), *super().get_urls()]

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        context = {**(extra_context or {}), "empty": why_empty(self.opts.model_name or "")}
        response: HttpResponse = super().changelist_view(request, context)
        return response

    def act_view(self, request: HttpRequest, object_id: int, verb_name: str) -> HttpResponse:
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not self.has_act_permission(request):
            raise PermissionDenied
        row = self.get_object(request, str(object_id))
        verb = next((verb for verb in self.verbs if verb.name == verb_name), None)
        if row is None or verb is None:
            raise Http404
        self.perform(request, verb, [row])
        return redirect(_next_page(request, page_of(row)))

    def readable(self, request: HttpRequest, key: int) -> Any:
        """The row for a view beside the pages: 404 or 403 where the page would be."""
        row = self.get_queryset(request).filter(pk=key).first()
        if row is None:
            raise Http404
        if not self.has_view_permission(request, row):
            raise PermissionDenied
        return row

    def perform(self, request: HttpRequest, verb: Verb, rows: Iterable[Model]) -> None:
        """Each row for itself: one that refuses does not hold up the others."""
        written = (_written(request, name) for name in ("text", "until"))
        act = Act(request.user.get_username(), utc_now(), *written)
        answers = [_answer(verb, row, act) for row in rows]
        for level, text in answers[:MOST_MESSAGES]:
            self.message_user(request, text, level)
        if len(answers) > MOST_MESSAGES:
            refused = sum(level == messages.ERROR for level, _ in answers)
            self.message_user(request, f"{verb.label}: {len(answers)} in all, {refused} refused")

    def page(self, _request: HttpRequest, _row: Any) -> dict[str, Any]:
        """What `page_template` shows above the columns; without a row it is the page to add one."""
        return {}

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        row = context.get("original")
        context |= {"page_template": self.page_template, **self.page(request, row)}
        # What people did is in the journal; Django's own history knows only of forms.
        context["show_history"] = False
        context["act_buttons"] = self.buttons(request, row) if row else []
        response: HttpResponse = super().render_change_form(request, context, *args, **kwargs)
        return response

    def buttons(self, request: HttpRequest, row: Model) -> list[tuple[Verb, str]]:
        """The verbs that make sense now, each with its address."""
        if not self.has_act_permission(request):
            return []
        return [(verb, act_url(row, verb)) for verb in self.verbs if verb.fits(row)]


class RecordAdmin(DroverAdmin):
    """Rows that only Drover writes."""

    def has_add_permission(self, _request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, _request: HttpRequest, _obj: Model | None = None) -> bool:
        return False


def act_url(row: Model, verb: Verb) -> str:
    name = f"admin:{row._meta.app_label}_{row._meta.model_name}_act"
    return reverse(name, args=[row.pk, verb.name])


def _written(request: HttpRequest, name: str) -> str:
    # PostgreSQL takes no NUL in a text.
    # Forms end their lines as no program does.
    return request.POST.get(name, "").replace("\0", "").replace("\r\n", "\n").strip()


def _answer(verb: Verb, row: Model, act: Act) -> tuple[int, str]:
    try:
        return messages.SUCCESS, verb.do(row, act)
    except DroverError as error:
        return messages.ERROR, f"{row}: {error}"


def _list_action(verb: Verb) -> Callable[..., None]:
    def act(model_admin: DroverAdmin, request: HttpRequest, rows: Iterable[Model]) -> None:
        model_admin.perform(request, verb, rows)

    act.__name__ = f"{verb.name}_selected"
    return admin.action(permissions=["act"], description=verb.label)(act)


def _next_page(request: HttpRequest, otherwise: str) -> str:
    wanted = request.POST.get("next", "")
    safe = url_has_allowed_host_and_scheme(wanted, {request.get_host()}, request.is_secure())
    return wanted if safe else otherwise
