"""The variables of `up` that each process gets."""

import pytest

from agents_app.conf import read_conf
from agents_app.stack.environment import role_environment

ROLES = ("redis", "worker-1", "beat", "gateway", "flower")
DJANGO = {"worker-1", "beat", "gateway"}
ENV = {
    "PATH": "/bin",
    "LC_ALL": "C.UTF-8",
    "PGPASSFILE": "/x",
    "DATABASE_URL": "postgresql://u:p@h/d",
    "REDIS_URL": "redis://:p@h",
    "DROVER_SECRET_KEY": "k",
    "DROVER_CREDENTIAL_KEYS": "k",
    "DROVER_ADMIN_PASSWORD": "p",
    "DROVER_BOOTSTRAP_TOKEN": "t",
    "DROVER_SECRET_VARIABLES": "HOOK_SECRET, SLACK_URL",
    "HOOK_SECRET": "s",
    "SLACK_URL": "s",
    "AWS_SECRET_ACCESS_KEY": "s",
    "FLOWER_UNAUTHENTICATED_API": "1",
}


@pytest.mark.parametrize(
    ("variable", "roles"),
    [
        ("PATH", {*ROLES}),
        ("LC_ALL", {*DJANGO, "flower"}),
        ("DATABASE_URL", DJANGO),
        ("PGPASSFILE", DJANGO),
        ("REDIS_URL", {*DJANGO, "flower"}),
        ("DROVER_SECRET_KEY", DJANGO),
        ("DROVER_CREDENTIAL_KEYS", DJANGO),
        ("HOOK_SECRET", {"beat", "gateway"}),
        ("SLACK_URL", {"beat", "gateway"}),
        ("DROVER_ADMIN_PASSWORD", set()),
        ("DROVER_BOOTSTRAP_TOKEN", set()),
        ("AWS_SECRET_ACCESS_KEY", set()),
        ("FLOWER_UNAUTHENTICATED_API", set()),
    ],
)
def test_a_variable_reaches_only_the_processes_that_need_it(variable: str, roles: set[str]):
    having = {role for role in ROLES if variable in role_environment(read_conf(ENV), ENV, role)}
    assert having == roles
