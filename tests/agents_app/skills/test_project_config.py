import pytest

from agents_app.skills.specs import (
    GatewaySpec,
    LocalSpec,
    NotifySpec,
    ProjectSpec,
    WebhookSourceSpec,
)
from tests.agents_app.skills.reading import problem, problems, project


def test_an_empty_config_has_every_default():
    spec = project("# nothing\n")
    assert spec == ProjectSpec()
    assert (spec.max_reruns, spec.max_call_depth, spec.work_queue_size) == (10, 3, 100)
    assert (spec.scale, spec.timezone, spec.command, spec.image) == (None, None, (), "")
    assert (spec.gateway, spec.local) == (GatewaySpec(port=8080), LocalSpec(timeout_seconds=900))
    assert (spec.resource_lock_timeout_seconds, spec.history_retention_days) == (1800, None)


@pytest.mark.parametrize(
    ("written", "field", "value"),
    [
        ("maxReruns = 5", "max_reruns", 5),
        ("max_reruns = 5", "max_reruns", 5),
        ("maxCallDepth = 1", "max_call_depth", 1),
        ("workQueueSize = 9", "work_queue_size", 9),
        ("scale = 4", "scale", 4),
        ("resourceLockTimeout = 60", "resource_lock_timeout_seconds", 60),
        ('resource_lock_timeout = "1h"', "resource_lock_timeout_seconds", 3600),
        ("historyRetentionDays = 3", "history_retention_days", 3),
        ('timezone = "Europe/Berlin"', "timezone", "Europe/Berlin"),
        ('command = ["claude", "-p"]', "command", ("claude", "-p")),
        ('image = "acme"', "image", "acme"),
        ('[gateway]\nport = 1\nurl = "http://x"', "gateway", GatewaySpec(port=1, url="http://x")),
        ('[local]\ntimeout = "1h"', "local", LocalSpec(timeout_seconds=3600)),
        ("\ufeffscale = 4\r\n", "scale", 4),
    ],
)
def test_a_setting_is_read(written, field, value):
    assert getattr(project(written), field) == value


def test_webhook_sources_keep_the_options_of_their_provider():
    text = '[webhooks.gh]\ntype = "github"\ncredential = "main"\nallowUnsigned = true\n'
    assert project(text + '[webhooks.x]\ntype = "generic"\nheader = "X-Sig"\n').webhooks == (
        WebhookSourceSpec(name="gh", type="github", credential="main", allow_unsigned=True),
        WebhookSourceSpec(name="x", type="generic", options={"header": "X-Sig"}),
    )


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("maxRerun = 1", "config.toml:2: maxRerun: unknown field; did you mean 'max_reruns'?"),
        ("scale = '1'", "config.toml:2: scale: must be a whole number, not '1'"),
        (
            "[gateway]\nport = 70000",
            "config.toml:3: gateway.port: must be at most 65535, not 70000",
        ),
        ("[gateway]\nprot = 1", "config.toml:3: gateway.prot: unknown field; did you mean 'port'?"),
        ("gateway.port = 'x'", "config.toml:2: gateway.port: must be a whole number, not 'x'"),
        ("gateway = 5", "config.toml:2: gateway: must be a table, not 5"),
        ("[local]\ntimeout = -1", "config.toml:3: local.timeout: must be more than 0"),
        ("timezone = 'Mars'", 'config.toml:2: timezone: unknown time zone "Mars"'),
        ("webhooks = []", "config.toml:2: webhooks: must be a table of sources, not a list"),
        ("webhooks.gh = 1", "config.toml:2: webhooks.gh: must be a table, not 1"),
        ("[webhooks.gh]\ncredential = 'x'", "config.toml:2: webhooks.gh.type: is missing"),
        (
            "[webhooks.gh]\ntype = 'github'\nallowUnsinged = true",
            "config.toml:4: webhooks.gh.allowUnsinged: unknown field; did you mean 'allow_uns",
        ),
        ("scale = \n", "config.toml:2:9: is not TOML: Invalid value"),
        ("scale = 1\nscale = 2\n", "config.toml:3:10: is not TOML: Cannot overwrite a value"),
        ('x = "', "config.toml:2: is not TOML: "),
        ("image = 'a\0b'", "config.toml:2: contains a NUL character"),
        ('image = "a\\u0000b"', "config.toml:2: a NUL character cannot be used in a value"),
        ("scale = nan", "config.toml:2: nan is not a finite number"),
    ],
)
def test_a_setting_that_cannot_be_used_is_refused_with_its_line(written, reason):
    assert problem(project, f"# a project\n{written}").startswith(reason)


def test_all_errors_of_a_config_are_reported_at_once():
    assert len(problems(project, "scale = -1\nimage = 5\nzzz = 1\n[local]\ntimeout = 0\n")) == 4


def test_notification_targets_are_read_with_failures_as_the_default():
    text = '[[notify]]\nurl = "https://hooks.example/x"\n'
    first, second = project(text + '[[notify]]\nurl = "env:URL"\non = "run.lost"').notify
    assert first == NotifySpec(url="https://hooks.example/x")
    assert first.on == ("run.failed", "run.timed_out", "run.lost", "run.dead")
    assert second == NotifySpec(url="env:URL", on=("run.lost",))


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ('url = "http://2130706433/"', "notify.1.url: is not an allowed URL: an IPv4 address"),
        ('url = "ftp://x"', "notify.1.url: is not an allowed URL: the URL must begin with http"),
        (
            'url = "https://x"\nsecrt = "env:X"',
            "notify.1.secrt: unknown field; did you mean",
        ),
        ('url = "https://x"\non = ["run.lots"]', "notify.1.on.1: must be one of run.started"),
        ('url = "https://x"\nsecret = "hunter2"', "notify.1.secret: must be a reference"),
        ('url = "https://x"\nformat = "xml"', "notify.1.format: must be 'json' or 'slack'"),
        ('on = "run.lost"', "notify.1.url: is missing"),
        (
            'url = "https://x"\n[[notify]]\nurl = "https://x"',
            "notify.2.url: another [[notify]] table has this URL",
        ),
    ],
)
def test_an_invalid_notification_target_is_refused(written, reason):
    found = problems(project, f"[[notify]]\n{written}\n")
    assert reason in found[0]
    assert "hunter2" not in found[0]


def test_targets_are_a_list_of_tables():
    assert "must be a list of tables ([[notify]])" in problem(project, "notify = 5")
