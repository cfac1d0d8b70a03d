"""Credentials: set by people, sealed in the rows, opened for a run, and shown nowhere."""

import json
import logging
from pathlib import Path

import pytest
import structlog
from cryptography.fernet import Fernet

from agents_app.accounts.tenants import delete_tenant
from agents_app.maintenance import doctor
from agents_app.models import Credential, RunEvent, RunOutput, Tenant
from agents_app.redaction import log_filter
from agents_app.redaction.redact import Redactor
from agents_app.secrets.credentials import remove_credential, set_credential
from agents_app.secrets.key_rotation import reseal_all
from agents_app.secrets.sealing import BrokenSeal, keys
from agents_app.secrets.store import NO_SECRETS, for_run, missing_of, redactor_for, value_of
from agents_app.secrets.types import parse_name
from agents_app.worker.execute import Host
from scheduler_project import log_format
from tests.agents_app.executing import do, printed, shell
from tests.agents_app.fleet import NOON, Fleet, at

CANARY = "canary-of-the-mine-4711"
KEY = "-----BEGIN KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmU\n-----END KEY-----\n"


def give(fleet: Fleet, name: str = "github_token", value: str = CANARY, **fields: str) -> bool:
    values = fields or {"value": value}
    return set_credential(fleet.tenant, parse_name(name), values, "ann", NOON)


# --- what people do -------------------------------------------------------------------------


def test_the_value_is_in_no_row_and_the_journal_names_the_user(fleet: Fleet):
    assert give(fleet)
    kept = Credential.objects.get()
    assert (kept.changed_by, kept.changed_at, kept.key_id) == ("ann", NOON, keys().first_id)
    assert CANARY not in str(vars(kept))
    (event,) = RunEvent.objects.all()
    assert (event.name, event.detail) == ("credential.set", "ann: github_token")


def test_setting_a_credential_again_replaces_it(fleet: Fleet):
    give(fleet)
    assert not set_credential(
        fleet.tenant, parse_name("github_token"), {"value": "another-token"}, "bob", at(5)
    )
    kept = Credential.objects.get()
    assert (kept.created_at, kept.changed_at, kept.changed_by) == (NOON, at(5), "bob")
    assert for_run(fleet.tenant.pk, ["github_token"]).env["GH_TOKEN"] == "another-token"


def test_a_removed_one_is_missing(fleet: Fleet):
    give(fleet)
    kept = Credential.objects.get()
    assert remove_credential(kept, "ann", NOON)
    assert not remove_credential(kept, "ann", NOON)
    assert [str(name) for name in missing_of(fleet.tenant.pk, ["github_token"])] == ["github_token"]
    assert RunEvent.objects.filter(name="credential.removed").count() == 1


def test_it_goes_with_its_tenant(fleet: Fleet):
    acme = Tenant.objects.create(name="acme")
    set_credential(acme, parse_name("npm_token"), {"value": CANARY}, "ann", NOON)
    delete_tenant(acme, "ann", NOON)
    assert not Credential.objects.exists()


def test_a_row_copied_to_another_name_or_tenant_opens_nothing(fleet: Fleet):
    give(fleet)
    Credential.objects.update(instance="work")
    with pytest.raises(BrokenSeal, match="another name or tenant"):
        for_run(fleet.tenant.pk, ["github_token:work"])


def test_rotation_seals_everything_with_the_newest_key(fleet: Fleet, monkeypatch):
    """Guard: after it the old key can be thrown away."""
    old, new, foreign = (Fernet.generate_key().decode() for _ in range(3))
    monkeypatch.setenv("DROVER_CREDENTIAL_KEYS", foreign)
    give(fleet, "npm_token")
    monkeypatch.setenv("DROVER_CREDENTIAL_KEYS", old)
    for number in range(3):
        give(fleet, f"github_token:{number}")
    monkeypatch.setenv("DROVER_CREDENTIAL_KEYS", f"{new},{old}")
    done = reseal_all()["credentials"]
    assert (done.done, done.broken) == (3, ("npm_token:default",))
    monkeypatch.setenv("DROVER_CREDENTIAL_KEYS", new)
    assert reseal_all()["credentials"].done == 0
    assert for_run(fleet.tenant.pk, ["github_token:2"]).env["GITHUB_TOKEN"] == CANARY
    monkeypatch.undo()
    keys.cache_clear()


def test_a_new_key_is_noticed_without_a_restart(fleet: Fleet, monkeypatch):
    new = Fernet.generate_key().decode()
    monkeypatch.setenv("DROVER_CREDENTIAL_KEYS", new)
    give(fleet)
    monkeypatch.undo()
    keys.cache_clear()
    assert keys().all != (new,)
    monkeypatch.setenv("DROVER_CREDENTIAL_KEYS", new)
    assert value_of(fleet.tenant.pk, "github_token") == CANARY
    monkeypatch.undo()
    keys.cache_clear()


def test_doctor_names_missing_credentials_and_the_command_for_them(fleet: Fleet):
    fleet.agent(credentials=["github_token", "aws:prod"])
    give(fleet)
    found = [f for f in doctor.examine(lambda: NOON) if f.check == "credentials"]
    assert [(f.verdict, f.advice) for f in found] == [
        ("wrong", "manage.py credential set aws:prod")
    ]
    Credential.objects.update(key_id="gone")
    assert (
        "its key is missing"
        in [f for f in doctor.examine(lambda: NOON) if f.check == "credentials"][1].detail
    )


# --- what a run gets ------------------------------------------------------------------------


def test_a_run_finds_its_credentials_in_its_environment(fleet: Fleet, host: Host):
    """In a way that shows it without printing it: printing is what must not work."""
    give(fleet)
    give(fleet, "aws", access_key_id="AKIA0123456789", secret_access_key=CANARY[::-1])
    command = shell('printf %s "$GH_TOKEN-$AWS_SECRET_ACCESS_KEY" | cksum; echo "[$NPM_TOKEN]"')
    give(fleet, "npm_token")
    run = do(fleet, host, fleet.agent(command=command, credentials=["github_token", "aws"]))
    assert run.state == "succeeded", run.error
    summed, rest = printed(run.pk).split("\n", 1)
    assert summed.split()[1] == str(2 * len(CANARY) + 1)
    assert rest == "[]\n"


def test_of_two_instances_the_first_named_has_the_plain_variable(fleet: Fleet):
    give(fleet, "github_token", "the-default-one")
    give(fleet, "github_token:work", "the-one-at-work")
    env = for_run(fleet.tenant.pk, ["github_token:work", "github_token"]).env
    assert (env["GITHUB_TOKEN"], env["GITHUB_TOKEN_WORK"]) == ("the-one-at-work",) * 2


def test_a_key_lies_in_a_file_for_its_owner_alone_and_goes_with_the_room(fleet: Fleet, host: Host):
    give(fleet, "git_ssh", KEY)
    script = 'f="$GIT_SSH_KEY_FILE"; stat -c %a "$f"; wc -c < "$f"; dirname "$f"'
    command = shell(script)
    run = do(fleet, host, fleet.agent(command=command, credentials=["git_ssh"]))
    mode, size, directory = printed(run.pk).split()
    assert (mode, int(size)) == ("400", len(KEY))
    assert str(run.pk) in directory and not Path(directory).exists()


def test_without_its_credential_the_program_does_not_start(fleet: Fleet, host: Host, tmp_path):
    agent = fleet.agent(command=["touch", str(tmp_path / "begun")], credentials=["npm_token:ci"])
    run = do(fleet, host, agent)
    assert run.state == "failed"
    assert run.error == (
        "credential_missing: not set: npm_token:ci: manage.py credential set npm_token:ci"
    )
    assert not (tmp_path / "begun").exists()


def test_an_agent_without_credentials_costs_no_query(fleet: Fleet, django_assert_num_queries):
    with django_assert_num_queries(0):
        assert for_run(fleet.tenant.pk, ()) is NO_SECRETS


# --- what is seen of it ---------------------------------------------------------------------


def test_what_a_run_prints_has_neither_its_credentials_nor_its_token(fleet: Fleet, host: Host):
    give(fleet)
    script = (
        'echo "$GH_TOKEN and $DROVER_RUN_TOKEN"; printf %s "${GH_TOKEN%4711}"; sleep 0.7; '
        'echo 4711; printf %s "$GH_TOKEN" | base64 >&2; printf %s "${GH_TOKEN%711}"'
    )
    run = do(fleet, host, fleet.agent(command=shell(script), credentials=["github_token"]))
    kept = b"".join(bytes(piece.data) for piece in RunOutput.objects.filter(run=run))
    assert printed(run.pk) == (
        "[redacted github_token] and [redacted run token]\n[redacted github_token]\n"
        + CANARY.removesuffix("711")
    )
    assert b"redacted github_token" in kept and b"Y2FuYXJ5" not in kept


def test_an_error_that_names_a_secret_does_not_say_it(fleet: Fleet, host: Host):
    give(fleet)
    agent = fleet.agent(command=[f"/no/such/{CANARY}"], credentials=["github_token"])
    assert "[redacted github_token]" in do(fleet, host, agent).error


def test_what_a_live_run_says_to_the_gateway_can_be_cleaned_there(fleet: Fleet):
    give(fleet)
    redactor = redactor_for(fleet.tenant.pk, ["github_token", "removed_since"], "the-run-token")
    assert redactor.clean_text(f"{CANARY} the-run-token") == (
        "[redacted github_token] [redacted run token]"
    )
    plain = redactor_for(fleet.tenant.pk, [], "the-run-token")
    assert plain.clean_text("the-run-token") == "[redacted run token]"


@pytest.fixture
def lines():
    """What the log's formatter writes, for a logger of its own."""
    found: list[str] = []

    class Keeping(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(self.format(record))

    handler = Keeping()
    settings = log_format._chain(structlog.processors.JSONRenderer())
    handler.setFormatter(log_format.JsonFormatter(**settings))
    logger = logging.getLogger("drover.canary")
    logger.addHandler(handler)
    yield found
    logger.removeHandler(handler)


def test_a_log_line_says_no_secret_of_a_live_run(lines: list[str]):
    log_filter.add_redactor(1, Redactor({"door": [CANARY]}))
    try:
        raise ValueError(CANARY)
    except ValueError:
        logging.getLogger("drover.canary").exception("failed for %s", json.dumps([CANARY]))
    finally:
        log_filter.remove_redactor(1)
    logging.getLogger("drover.canary").warning("no run holds %s any more", CANARY)
    assert "canary-of" not in lines[0] and lines[0].count("[redacted door]") == 2
    assert CANARY in lines[1]


@pytest.mark.parametrize(
    ("secret", "name"),
    [
        (f"ghp_{'a1B2' * 9}", "GitHub token"),
        (f"github_pat_{'a1_B' * 8}", "GitHub token"),
        ("xoxb-1234567890-abcdef", "Slack token"),
        ("sk-ant-api03-abcdefghijkl", "API key"),
        ("AKIAIOSFODNN7EXAMPLE", "AWS key"),
        (f"drover_run_12_{'x' * 43}", "run token"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----", "private key"),
    ],
)
def test_a_log_line_says_nothing_that_looks_like_a_secret(secret, name):
    assert log_filter.clean_line(f"it was {secret}, yes") == f"it was [redacted {name}], yes"


def test_an_ordinary_log_line_stays_as_it_is():
    line = '{"event": "run.succeeded", "task-sk-1": "risk-free", "run_id": 4, "xox": "-----BEGIN"}'
    assert log_filter.clean_line(line) == line
