"""Settings of a public installation: accepted behind TLS, otherwise refused or warned about."""

import os
import subprocess
import sys
from collections.abc import Callable

import pytest
from django.core.checks import run_checks

from agents_app import checks
from agents_app.conf import ROOT, read_conf
from agents_app.errors import ConfigError
from agents_app.management.commands.up import ensure_checks
from gateway_app.serve import configured

PRODUCTION = {
    "DROVER_PUBLIC_URL": "https://drover.example.com",
    "DROVER_TRUSTED_PROXIES": "127.0.0.1",
}


def deploy(tmp_path, **env: str) -> subprocess.CompletedProcess[str]:
    """A process of its own: Django reads its settings once."""
    base = {"PATH": os.environ["PATH"], "DROVER_DATA": str(tmp_path)}
    command = [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"]
    return subprocess.run(command, cwd=ROOT, env=base | env, capture_output=True, text=True)


@pytest.fixture
def configure(monkeypatch) -> Callable[[dict[str, str]], None]:
    """Sets the environment that the system checks of Drover judge."""
    return lambda env: monkeypatch.setattr(checks, "CONF", read_conf(env))


def test_the_deployment_check_is_clean_behind_tls(tmp_path):
    done = deploy(tmp_path, **PRODUCTION)
    assert done.returncode == 0, done.stderr


def test_the_deployment_check_reports_missing_tls(tmp_path):
    """Shows that the check above can fail."""
    done = deploy(tmp_path)
    assert done.returncode == 1
    assert all(f"security.{name}" in done.stderr for name in ("W004", "W008", "W012", "W016"))


def test_a_public_https_url_without_trusted_proxies_is_refused_with_a_remedy(configure):
    """`up` prints the text of a ConfigError as one line, see tests/end_to_end/test_refusals.py."""
    configure({"DROVER_PUBLIC_URL": "https://drover.example.com"})
    with pytest.raises(ConfigError) as refused:
        ensure_checks()
    (line,) = str(refused.value).splitlines()
    assert "DROVER_TRUSTED_PROXIES" in line and "(drover.E003)" in line


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({"DROVER_HOST": "0.0.0.0"}, "drover.W001"),
        ({"DROVER_HOST": "0.0.0.0", "DROVER_ALLOWED_HOSTS": "drover.lan"}, ""),
        ({"DROVER_HOST": "::1"}, ""),
        ({"DROVER_PUBLIC_URL": "http://drover.lan"}, "drover.W002"),
        ({"DROVER_PUBLIC_URL": "http://localhost:8080", "DROVER_HOST": "0.0.0.0"}, ""),
        ({**PRODUCTION, "DROVER_HOST": "0.0.0.0"}, ""),
    ],
)
def test_a_public_address_without_protection_is_a_warning(configure, env, expected):
    configure(env)
    assert [message.id for message in run_checks()] == ([expected] if expected else [])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("DROVER_PUBLIC_URL", "drover.example.com"),
        ("DROVER_PUBLIC_URL", "ftp://drover.example.com"),
        ("DROVER_PUBLIC_URL", "https://"),
        ("DROVER_PUBLIC_URL", "https://x/drover"),
        ("DROVER_PUBLIC_URL", "https://x?y"),
        ("DROVER_PUBLIC_URL", "https://x:99999"),
        ("DROVER_TRUSTED_PROXIES", "*"),
        ("DROVER_TRUSTED_PROXIES", "127.0.0.1,proxy"),
        ("DROVER_TRUSTED_PROXIES", "10.0.0.1/8"),
    ],
)
def test_an_invalid_public_url_or_proxy_is_refused(name, text):
    with pytest.raises(ConfigError, match=name):
        read_conf({name: text})


def test_forwarding_headers_count_only_from_trusted_proxies():
    assert not configured("127.0.0.1", 1, read_conf({}).trusted_proxies).proxy_headers
    conf = read_conf({"DROVER_TRUSTED_PROXIES": "10.0.0.5, 10.1.0.0/16"})
    config = configured("127.0.0.1", 1, conf.trusted_proxies)
    assert config.proxy_headers
    assert config.forwarded_allow_ips == ["10.0.0.5/32", "10.1.0.0/16"]
