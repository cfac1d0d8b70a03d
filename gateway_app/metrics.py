"""/metrics for Prometheus: without a token for this machine, else with a token of `default`."""

from collections.abc import Iterable
from datetime import UTC, datetime

from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.http.request import split_domain_port
from django.views.decorators.http import require_safe
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from agents_app.conf import CONF
from agents_app.errors import DroverError
from agents_app.installation import is_loopback
from agents_app.maintenance import Histogram, ValueMetric, read_metrics
from agents_app.models import DEFAULT_TENANT
from gateway_app.access import (
    READ,
    Forbidden,
    TooMany,
    admit,
    bearer_token,
    caller_with_token,
    look_up_token,
    problem,
)

PREFIX = "drover_"
# A request with one of these headers came through a proxy: its client may be on another machine.
FORWARDED = ("Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP", "Via")


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    try:
        if not is_local(request, CONF.host):
            _admit(request)
        values = read_metrics(datetime.now(UTC))
    except DroverError as error:
        return _refusal(error)
    except DatabaseError:
        return problem(503, "unavailable", "the database does not answer: try again")
    encode, content_type = choose_encoder(request.headers.get("Accept", ""))
    response = HttpResponse(encode(_MetricFamilies(values)), content_type=content_type)
    response["Cache-Control"] = "no-store"
    return response


# --- access ---------------------------------------------------------------------------------


class MissingToken(DroverError):
    """The request has no valid bearer token."""

    code = "unauthorized"
    http_status = 401


def is_local(request: HttpRequest, listens_on: str) -> bool:
    """Whether the gateway listens on this machine only and the request came directly to it."""
    if any(name in request.headers for name in FORWARDED):
        return False
    host, _ = split_domain_port(request.get_host())
    return is_loopback(listens_on) and is_loopback(host)


def _admit(request: HttpRequest) -> None:
    address = request.META.get("REMOTE_ADDR", "")
    caller = None
    if token := bearer_token(request.headers.get("Authorization", "")):
        caller = look_up_token(token, address, lambda text: caller_with_token(text, address))
    if caller is None:
        raise MissingToken("missing or invalid bearer token")
    admit(caller, READ)
    if caller.tenant.name != DEFAULT_TENANT:
        raise Forbidden(f"only a token of the tenant {DEFAULT_TENANT!r} may read the metrics")


def _refusal(error: DroverError) -> HttpResponse:
    response = problem(error.http_status, error.code, str(error))
    if error.http_status == MissingToken.http_status:
        response["WWW-Authenticate"] = "Bearer"
    if isinstance(error, TooMany):
        response["Retry-After"] = str(error.retry_after_seconds)
    return response


# --- the format of Prometheus ---------------------------------------------------------------


class _MetricFamilies(Collector):
    def __init__(self, metrics: Iterable[ValueMetric | Histogram]) -> None:
        self.metrics = metrics

    def collect(self) -> Iterable[Metric]:
        return [_family(metric) for metric in self.metrics]


def _family(metric: ValueMetric | Histogram) -> Metric:
    name, labels = PREFIX + metric.name, list(metric.labels)
    if isinstance(metric, Histogram):
        histogram = HistogramMetricFamily(name, metric.about, labels=labels)
        for values, buckets, total in metric.samples:
            histogram.add_metric(list(values), buckets, total)
        return histogram
    kind = GaugeMetricFamily if metric.kind == "gauge" else CounterMetricFamily
    family = kind(name, metric.about, labels=labels)
    for values, value in metric.samples:
        family.add_metric(list(values), value)
    return family
