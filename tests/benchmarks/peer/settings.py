"""Django settings of the peer's beat and gateway: the admin and django-celery-beat."""

from agents_app.conf import CONF, database_settings

SECRET_KEY = "not a secret: only a benchmark uses it"
ALLOWED_HOSTS = ["127.0.0.1"]
ROOT_URLCONF = "tests.benchmarks.peer.site"
USE_TZ = True
TIME_ZONE = "UTC"
STATIC_URL = "static/"
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_celery_beat",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
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
# The tables exist: a database of Drover has those of django-celery-beat, too.
DATABASES = {"default": database_settings(CONF.database_url)}
if "postgresql" in DATABASES["default"]["ENGINE"]:
    # As Django advises under ASGI; a new connection for each request would be half as fast.
    DATABASES["default"]["OPTIONS"]["pool"] = True
