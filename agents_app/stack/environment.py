"""The environment of each role: the variables of `up` that its process needs; pure.

A role that is not listed here gets nothing, and a new variable with a secret reaches no process
before it is named here.
"""

from collections.abc import Mapping
from fnmatch import fnmatchcase

from agents_app.conf import Conf

Environment = Mapping[str, str]

# Secrets of the first start, which no other process needs.
ONLY_FOR_UP = frozenset({"DROVER_ADMIN_PASSWORD", "DROVER_BOOTSTRAP_TOKEN"})
_PYTHON = (
    *("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_*", "TZ", "TERM", "TMPDIR"),
    *("PYTHON*", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "LD_PRELOAD", "MALLOC_*"),
)
_DJANGO = (
    *(*_PYTHON, "DROVER_*", "DJANGO_SETTINGS_MODULE", "REDIS_URL"),
    # PG*: settings of libpq, such as PGPASSFILE and PGSSLROOTCERT.
    *("DATABASE_URL", "PG*", "DOCKER_*", "SSL_CERT_FILE", "SSL_CERT_DIR"),
)
_ALLOWED: Mapping[str, tuple[str, ...]] = {
    "redis": ("PATH", "LANG", "TZ"),
    # With the keys of credentials: workers decrypt them for runs, beat for work sources, and the
    # gateway for webhook sources.
    "worker": _DJANGO,
    "beat": _DJANGO,
    "gateway": _DJANGO,
    # Without DJANGO_SETTINGS_MODULE: Celery would load Django, 30 MB that Flower does not need.
    "flower": (*_PYTHON, "DROVER_DATA", "DROVER_REDIS_PREFIX", "REDIS_URL"),
}
# Beat signs notifications and reads work sources, and the gateway checks webhooks, with secrets
# that `env:NAME` refers to.
_WITH_SECRET_VARIABLES = frozenset({"beat", "gateway"})


def role_environment(conf: Conf, env: Environment, name: str) -> dict[str, str]:
    """The variables for the process `name`, for example `worker-1`."""
    role = name.partition("-")[0]
    secrets = conf.secret_variables if role in _WITH_SECRET_VARIABLES else ()
    return {
        variable: value
        for variable, value in env.items()
        if variable in secrets or (variable not in ONLY_FOR_UP and _is_allowed(variable, role))
    }


def _is_allowed(variable: str, role: str) -> bool:
    return any(fnmatchcase(variable, pattern) for pattern in _ALLOWED[role])
