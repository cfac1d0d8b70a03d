"""Django and Celery settings; agents_app.conf reads Drover's own from the environment."""

import os
from pathlib import Path
from typing import Any

from agents_app.clock import HOST_ZONE
from agents_app.conf import CONF, database_settings
from agents_app.installation import (
    create_private_database,
    read_secret_key,
    redis_url,
    transport_options,
)
from scheduler_project.admin_site import UNFOLD as UNFOLD
from scheduler_project.log_format import EMBEDDED, logging_settings

DEBUG = CONF.debug
SECRET_KEY = read_secret_key(CONF.data)
# Always the loopback names, by which `up` checks the gateway.
ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]", *CONF.allowed_hosts]
ALLOWED_HOSTS += filter(None, [CONF.public_host])
ROOT_URLCONF = "scheduler_project.urls"
ASGI_APPLICATION = "scheduler_project.asgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
USE_I18N = False
FORMAT_MODULE_PATH = "scheduler_project.date_formats"
TIME_ZONE = HOST_ZONE  # for display; rows are stored in UTC
STATIC_URL = "static/"

INSTALLED_APPS = [
    "unfold",
    "scheduler_project.pages.PagesConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_celery_beat",
    "agents_app",
    "gateway_app",
]
_PAGES = {
    *("unfold", "scheduler_project.pages.PagesConfig", "django.contrib.sessions"),
    *("django.contrib.messages", "django.contrib.staticfiles", "gateway_app"),
}
if os.environ.get("DROVER_ROLE", "").partition("-")[0] in {"worker", "beat", EMBEDDED}:
    # Workers, beat and programs with a scheduler of their own (agents_app.scheduler) have no pages;
    # loading them costs 10 MB and 0.1 s per process.
    INSTALLED_APPS = [app for app in INSTALLED_APPS if app not in _PAGES]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "gateway_app.access.idle_sessions.IdleSessionMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "gateway_app.asgi.invalid_values.InvalidValueMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        # Before the templates of Unfold, of which Drover replaces one.
        "DIRS": [Path(__file__).resolve().parent.parent / "agents_app" / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
WHITENOISE_USE_FINDERS = True
# The limit of asgi/body_limit.py: Django must neither refuse these bodies nor write them to disk.
DATA_UPLOAD_MAX_MEMORY_SIZE = FILE_UPLOAD_MAX_MEMORY_SIZE = 2_500_000
SESSION_COOKIE_AGE = CONF.session_idle_minutes * 60
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_NAME = f"drover_session_{CONF.port}"
CSRF_COOKIE_NAME = f"drover_csrf_{CONF.port}"
_VALIDATORS = "django.contrib.auth.password_validation"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"{_VALIDATORS}.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": f"{_VALIDATORS}.UserAttributeSimilarityValidator"},
    {"NAME": f"{_VALIDATORS}.CommonPasswordValidator"},
    {"NAME": f"{_VALIDATORS}.NumericPasswordValidator"},
]
LOGIN_URL, LOGIN_REDIRECT_URL = "admin:login", "admin:index"
CSRF_TRUSTED_ORIGINS = [CONF.public_url] if CONF.public_url else []
# TLS is used if DROVER_PUBLIC_URL starts with https. uvicorn sets the scheme of a request, and
# accepts X-Forwarded-Proto and -For only from DROVER_TRUSTED_PROXIES.
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = CONF.tls
SECURE_HSTS_SECONDS = 365 * 86_400 if CONF.tls else 0
# Requested without TLS on this machine by `up` and by monitoring.
SECURE_REDIRECT_EXEMPT = [r"^(healthz|readyz|metrics)$"]
# HSTS for subdomains and preloading would affect other services below this domain.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]


# A process that waits for a processor must not lose its transaction.
SHORTEST_IDLE_TRANSACTION_SECONDS = 10.0


def _database() -> dict[str, Any]:
    database = database_settings(CONF.database_url)
    if "postgresql" not in database["ENGINE"]:
        return database
    # The server would keep the row locks of a process that was cut off within a transaction for
    # hours, and the sweep would wait for them instead of ending its runs.
    milliseconds = 1000 * max(CONF.lease_seconds, SHORTEST_IDLE_TRANSACTION_SECONDS)
    limit = f"-c idle_in_transaction_session_timeout={milliseconds:.0f}"
    database["OPTIONS"]["options"] = f"{limit} {database['OPTIONS'].get('options', '')}".strip()
    if os.environ.get("DROVER_ROLE") == "gateway":
        # Under ASGI a connection per thread would never be closed; a pool reuses connections. Its
        # timeout is shorter than that of clients, which then receive an error.
        database["OPTIONS"]["pool"] = {"min_size": 1, "max_size": 8, "timeout": 4}
    else:
        database["CONN_MAX_AGE"] = None
        # A worker repeats a dozen statements: prepared statements halve their cost.
        database["OPTIONS"] |= {"server_side_binding": True, "prepare_threshold": 3}
    return database


DATABASES = {"default": _database()}
create_private_database(CONF)
LOGGING_CONFIG = None
LOGGING = logging_settings(CONF, os.environ.get("DROVER_ROLE", ""))

DROVER_HINT_TRANSPORT = "scheduler_project.hints.CeleryHints"
if os.environ.get("DROVER_ROLE") == EMBEDDED:
    DROVER_HINT_TRANSPORT = "agents_app.events.relay.NoHints"
CELERY_BROKER_URL = redis_url(CONF)
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_TRANSPORT_OPTIONS = transport_options(CONF)
CELERY_TASK_IGNORE_RESULT = True
CELERY_RESULT_EXPIRES = None
CELERY_TASK_ACKS_LATE = False
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TIMEZONE = "UTC"
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_DISABLE_PREFETCH = True
CELERY_WORKER_CONSUMER = "scheduler_project.worker:DroverConsumer"
CELERY_WORKER_SEND_TASK_EVENTS = True
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_REDIRECT_STDOUTS = False
CELERY_TASK_DEFAULT_QUEUE = "drover"
CELERY_CONTROL_QUEUE_EXPIRES = 60
# Celery would close the connection after every task: two new connections per run.
CELERY_DB_REUSE_MAX = 1_000_000_000
DJANGO_CELERY_BEAT_TZ_AWARE = True
# System duties, shown as periodic tasks in the admin; scheduler_project/beat.py performs them.
CELERY_BEAT_SCHEDULE = {
    "drover: reconcile": {
        "task": "agents_app.tasks.reconcile",
        "schedule": CONF.reconcile_seconds,
    },
    "drover: notify": {"task": "agents_app.tasks.notify", "schedule": 10.0},
    "drover: snapshot": {"task": "agents_app.tasks.take_snapshot", "schedule": 60.0},
    "drover: totals": {"task": "agents_app.tasks.count_totals", "schedule": 15.0},
    "drover: rules": {"task": "agents_app.tasks.obey_rules", "schedule": 10.0},
    "drover: work sources": {"task": "agents_app.tasks.poll_work_sources", "schedule": 5.0},
    "drover: retention": {"task": "agents_app.tasks.retention", "schedule": 3600.0},
}
