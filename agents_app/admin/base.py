"""Base classes of the admin pages: names, permissions, and verbs (buttons and list actions)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import FieldDoesNotExist, PermissionDenied, ValidationError
from django.core.paginator import Paginator
from django.db.models import ForeignObjectRel, Model
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import redirect
from django.urls import URLPattern, path, reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.text import capfirst
from unfold.admin import ModelAdmin
from unfold.views import ChangeList

from agents_app.admin.empty_lists import empty_list
from agents_app.admin.filters import TenantFilter
from agents_app.admin.formatting import NOTHING, page_of
from agents_app.errors import DroverError
from agents_app.models import Tenant

MOST_MESSAGES = 5


def utc_now() -> datetime:
    return datetime.now(UTC)


def may_see(request: HttpRequest, noun: str) -> bool:
    return any(request.user.has_perm(f"agents_app.{may}_{noun}") for may in ("view", "change"))


@dataclass(frozen=True, slots=True)
class Act:
    """One use of a verb: the user, the time, and the texts of the verb's form."""

    by: str
    now: datetime
    text: str = ""
    until: str = ""

    @property
    def note(self) -> str:
        """The text, cut to the length of the columns that store a note."""
        return self.text[:500]


@dataclass(frozen=True, slots=True)
class Done:
    """The result of a verb: the message to show, and the row whose page is opened next."""

    text: str
    opens: Model | None = None


@dataclass(frozen=True, slots=True)
class Verb:
    """A button on a row's page and an action in the list; `do` returns the message to show, or
    also the row that the verb made."""

    name: str
    label: str
    icon: str
    do: Callable[[Any, Act], str | Done]
    fits: Callable[[Any], bool] = lambda _row: True
    asks: str = ""
    asks_until: str = ""
    danger: bool = False
    # Shown beside the button.
    effect: str = ""
    # Whether the verb can be applied to several selected rows.
    in_list: bool = True


class EntryPaginator(Paginator):  # type: ignore[type-arg]
    """Counts entries: the name of a table is not always the plural of a row."""

    template_name = "drover/pagination.html"


class EntryList(ChangeList):  # type: ignore[misc]
    """Its heading has the number of results only for a search or a filter."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        if not (self.query or self.has_active_filters):
            self.full_result_count = self.result_count


class NamedPages(ModelAdmin):  # type: ignore[misc]
    """Page titles from the model's names: `Runs`, `Run 54 | Runs`, `Add schedule | Schedules`.

    An empty list says what it would contain, or that no entry matches the filters."""

    change_list_template: Any = "drover/change_list.html"

    def row_name(self, row: Any) -> str:
        """`Run 54`; the name of an agent is not capitalised."""
        text = str(row)
        return capfirst(text) if text.startswith(f"{self.opts.verbose_name} ") else text

    @property
    def page_name(self) -> str:
        return capfirst(str(self.opts.verbose_name_plural))

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """The values in the address, without those that their fields cannot have."""
        given: dict[str, Any] = super().get_changeform_initial_data(request)
        return {name: value for name, value in given.items() if self._fits(name, value)}

    def _fits(self, name: str, value: Any) -> bool:
        try:
            field: Any = self.opts.get_field(name)
        except FieldDoesNotExist:
            return True  # a field of the form alone: any text
        if isinstance(field, ForeignObjectRel):
            return False
        column = field.target_field if field.is_relation else field
        try:
            for each in value if isinstance(value, list) else [value]:
                column.get_prep_value(column.to_python(each))
        except (ValidationError, ValueError, TypeError, OverflowError):
            return False
        return True

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        context = {
            "title": self.page_name,
            "module_name": "entries",
            "empty": empty_list(self.opts.model_name or ""),
            **(extra_context or {}),
        }
        response: HttpResponse = super().changelist_view(request, context)
        return response

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        row = context.get("original")
        context["title"] = self.page_name
        context["subtitle"] = f"Add {self.opts.verbose_name}"
        if row:
            # The template of the path to the page has only the row.
            context["subtitle"] = row.page_name = self.row_name(row)
        response: HttpResponse = super().render_change_form(request, context, *args, **kwargs)
        return response


class DroverAdmin(NamedPages):
    """Verbs require the permission to change the table, also where no column is editable."""

    verbs: tuple[Verb, ...] = ()
    page_template = ""
    paginator = EntryPaginator
    change_form_outer_before_template = "drover/page.html"
    show_full_result_count = False
    list_per_page = 50

    def __init__(self, model: type[Model], admin_site: admin.AdminSite) -> None:
        self.actions = [_list_action(verb) for verb in self.verbs if verb.in_list]
        super().__init__(model, admin_site)

    def get_list_display(self, request: HttpRequest) -> list[Any]:
        """The list's own columns; with several tenants also the tenant, as rows of two of them may
        have the same name."""
        own = list(super().get_list_display(request))
        if "tenant" in own or not _belongs_to_tenant(self.model):
            return own
        names = dict(Tenant.objects.values_list("pk", "name"))

        @admin.display(description="tenant")
        def tenant(row: Any) -> str:
            return names.get(row.tenant_id, NOTHING)

        return [*own, tenant] if len(names) > 1 else own

    def get_list_filter(self, request: HttpRequest) -> list[Any]:
        """The list's own filters, and one by tenant in each list of rows that belong to one."""
        own = list(super().get_list_filter(request))
        if not _belongs_to_tenant(self.model):
            return own
        return [*own, ("tenant", TenantFilter)]

    def get_changelist(self, _request: HttpRequest, **_: Any) -> type[ChangeList]:
        return EntryList

    def has_act_permission(self, request: HttpRequest) -> bool:
        options = self.opts
        return request.user.has_perm(f"{options.app_label}.change_{options.model_name}")

    def has_delete_permission(self, _request: HttpRequest, _obj: Model | None = None) -> bool:
        """Rows are removed by retention; agents and schedules are paused or canceled instead."""
        return False

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.act_view)
        name = f"{self.opts.app_label}_{self.opts.model_name}_act"
        return [path("<int:object_id>/act/<slug:verb_name>/", view, name=name), *super().get_urls()]

    def act_view(self, request: HttpRequest, object_id: int, verb_name: str) -> HttpResponse:
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not self.has_act_permission(request):
            raise PermissionDenied
        row = self.get_object(request, str(object_id))
        verb = next((verb for verb in self.verbs if verb.name == verb_name), None)
        if row is None or verb is None:
            raise Http404
        if opened := self.perform(request, verb, [row]):
            return redirect(page_of(opened))
        exists = self.get_queryset(request).filter(pk=object_id).exists()
        listing = reverse(f"admin:{self.opts.app_label}_{self.opts.model_name}_changelist")
        return redirect(_next_page(request, page_of(row) if exists else listing))

    def readable(self, request: HttpRequest, key: int) -> Any:
        """The row for a partial view; 404 and 403 as on the row's page."""
        row = self.get_queryset(request).filter(pk=key).first()
        if row is None:
            raise Http404
        if not self.has_view_permission(request, row):
            raise PermissionDenied
        return row

    def perform(self, request: HttpRequest, verb: Verb, rows: Iterable[Model]) -> Model | None:
        """Applies the verb to each row separately: a refusal of one does not affect the others.

        Returns the row that a verb on a single row made, if the user may see it."""
        texts = (_form_text(request, name) for name in ("text", "until"))
        act = Act(request.user.get_username(), utc_now(), *texts)
        results = [_result(verb, row, act) for row in rows]
        for level, done in results[:MOST_MESSAGES]:
            self.message_user(request, done.text, level)
        if len(results) > MOST_MESSAGES:
            refused = sum(level == messages.ERROR for level, _ in results)
            self.message_user(request, f"{verb.label}: {len(results)} rows, {refused} refused")
        opened = results[0][1].opens if len(results) == 1 else None
        visible = opened is not None and may_see(request, opened._meta.model_name or "")
        return opened if visible else None

    def page(self, _request: HttpRequest, _row: Any) -> dict[str, Any]:
        """The context of `page_template`; the row is None on the page that adds one."""
        return {}

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        row = context.get("original")
        context |= {"page_template": self.page_template, **self.page(request, row)}
        # Changes are recorded as events; Django's history contains only submitted forms.
        context["show_history"] = False
        context["act_buttons"] = self.buttons(request, row) if row else []
        response: HttpResponse = super().render_change_form(request, context, *args, **kwargs)
        return response

    def buttons(self, request: HttpRequest, row: Model) -> list[tuple[Verb, str]]:
        """The verbs that fit the row's state, each with its address."""
        if not self.has_act_permission(request):
            return []
        return [(verb, act_url(row, verb)) for verb in self.verbs if verb.fits(row)]


class RecordAdmin(DroverAdmin):
    """Pages of tables that only Drover writes."""

    def has_add_permission(self, _request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, _request: HttpRequest, _obj: Model | None = None) -> bool:
        return False


def _belongs_to_tenant(model: type[Model]) -> bool:
    return any(field.name == "tenant" for field in model._meta.fields)


def act_url(row: Model, verb: Verb) -> str:
    name = f"admin:{row._meta.app_label}_{row._meta.model_name}_act"
    return reverse(name, args=[row.pk, verb.name])


def _form_text(request: HttpRequest, name: str) -> str:
    # PostgreSQL stores no NUL, and browsers end lines with CRLF.
    return request.POST.get(name, "").replace("\0", "").replace("\r\n", "\n").strip()


def _result(verb: Verb, row: Model, act: Act) -> tuple[int, Done]:
    try:
        done = verb.do(row, act)
    except DroverError as error:
        return messages.ERROR, Done(f"{row}: {error}")
    return messages.SUCCESS, done if isinstance(done, Done) else Done(done)


def _list_action(verb: Verb) -> Callable[..., HttpResponse | None]:
    def act(
        model_admin: DroverAdmin, request: HttpRequest, rows: Iterable[Model]
    ) -> HttpResponse | None:
        opened = model_admin.perform(request, verb, rows)
        return redirect(page_of(opened)) if opened else None

    act.__name__ = f"{verb.name}_selected"
    return admin.action(permissions=["act"], description=verb.label)(act)


def _next_page(request: HttpRequest, default: str) -> str:
    wanted = request.POST.get("next", "")
    safe = url_has_allowed_host_and_scheme(wanted, {request.get_host()}, request.is_secure())
    return wanted if safe else default
