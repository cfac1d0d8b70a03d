"""A migrated database of version 0.1.0 keeps its content, and new runs work on it."""

import hashlib
import json
import urllib.error
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from cryptography.fernet import Fernet

from tests.upgrade.answers import Client
from tests.upgrade.conftest import EXPECTED, PROVENANCE, Running, Upgraded
from tests.upgrade.facts import ROWS

# The pages of the causes of a run, by kind.
PAGES = {
    "delivery": "deliveries",
    "rerun": "runs",
    "call": "runs",
    "message": "messages",
    "rule": "rules",
    "schedule": "schedules",
    "firing": "schedules",
}


# --- the rows -------------------------------------------------------------------------------


def test_every_table_keeps_its_number_of_rows(upgraded: Upgraded) -> None:
    assert upgraded.counts == upgraded.expected["counts"]


def test_every_row_keeps_its_state_or_outcome(upgraded: Upgraded) -> None:
    assert upgraded.states == upgraded.expected["states"]


@pytest.mark.parametrize("name", ROWS)
def test_rows_outside_the_api_keep_their_values(upgraded: Upgraded, name: str) -> None:
    assert upgraded.rows[name] == upgraded.expected["rows"][name]
    assert upgraded.rows[name], "the database has rows of each kind"


def test_stored_output_keeps_every_byte(upgraded: Upgraded) -> None:
    assert upgraded.output == upgraded.expected["output"]


def test_every_work_item_names_its_cause_by_a_foreign_key(upgraded: Upgraded) -> None:
    causes = upgraded.expected["causes"]
    found = {
        str(row.pop("id")): {name: key for name, key in row.items() if key is not None}
        for row in upgraded.work
    }
    assert found == {item: provenance_of(cause) for item, cause in causes.items()}
    kinds = {cause["kind"] for cause in causes.values() if not cause.get("missing")}
    removed = {cause["kind"] for cause in causes.values() if cause.get("missing")}
    assert kinds >= PROVENANCE.keys(), "the database has work of each kind"
    assert removed == {"delivery", "rule", "rerun"}, "and work whose cause was deleted"


def provenance_of(cause: Any) -> dict[str, int]:
    """The columns that are not NULL: none if the cause was deleted."""
    column = PROVENANCE.get(cause["kind"])
    return {column: cause["id"]} if column and not cause.get("missing") else {}


def test_every_event_of_the_audit_names_its_actor(upgraded: Upgraded) -> None:
    found = {(row["name"], row["detail"]): row["actor"] for row in upgraded.events}
    expected = {
        ("agent.paused", "operator: its work waits for the upgrade"): "operator",
        ("agent.scaled", "token operator: 0"): "token operator",
        ("schedule.paused", "evening: operator: not in summer"): "operator",
        ("schedule.created", "daily: token first"): "token first",
        ("agent.messaged", "by rule tell"): "rule tell",
        ("run.stop_requested", "stopped by operator"): "operator",
        ("run.stop_requested", "budget: 150 of 100 tokens a day are used"): "",
    }
    assert {key: found[key] for key in expected} == expected
    by_itself = {row["name"] for row in upgraded.events if not row["actor"]}
    assert not {name for name in by_itself if not name.startswith(("run.", "rule"))} - {
        *("agent.over_budget", "work.overflowed")
    }


def test_sealed_credentials_open_with_the_same_key(upgraded: Upgraded) -> None:
    found = [
        [row["tenant"], name, unsealed(row["sealed"], row["tenant_id"], name)]
        for row in upgraded.credentials
        if (name := f"{row['type']}:{row['instance']}".removesuffix(":default"))
    ]
    assert sorted(found) == sorted(upgraded.expected["credentials"])


def unsealed(sealed: str, tenant_id: int, name: str) -> str:
    """Opened by Fernet alone: tenant id, name and values are sealed together."""
    key = EXPECTED["secrets"]["DROVER_CREDENTIAL_KEYS"]
    of_tenant, of_name, values = json.loads(Fernet(key).decrypt(sealed))
    assert (of_tenant, of_name.removesuffix(":default")) == (tenant_id, name)
    return str(json.loads(values)["value"])


def test_doctor_finds_no_violated_invariant_and_no_missing_migration(upgraded: Upgraded) -> None:
    findings = [one for one in upgraded.commands["doctor"]["findings"] if one["verdict"] == "wrong"]
    by_check = {one["check"]: one["verdict"] for one in upgraded.commands["doctor"]["findings"]}
    assert by_check["invariants"] == "ok", findings
    assert not [one for one in findings if one["check"] == "database"]


# --- the API and the commands ---------------------------------------------------------------


@pytest.mark.parametrize("what", ["runs", "lines", "schedules", "deliveries", "work", "agents"])
@pytest.mark.parametrize("token", ["operator", "acme"])
def test_the_api_answers_as_version_0_1_0_did(running: Running, token: str, what: str) -> None:
    answers = running.upgraded.expected["answers"][token]
    before = without_notes(answers[what])
    if what == "schedules":
        # Version 0.1.0 counted firings, also skipped ones.
        runs = Counter(str(run["schedule_id"]) for run in answers["runs"].values())
        before = {key: {**row, "run_count": runs[key]} for key, row in before.items()}
    assert known_fields(running.answers[token][what], before) == before
    assert before, "there is something to compare"


def without_notes(answers: Any) -> Any:
    """Sentences about the state of an agent may change with each version."""
    return {
        key: {name: value for name, value in row.items() if name != "note"}
        if isinstance(row, dict)
        else row
        for key, row in answers.items()
    }


def known_fields(answer: Any, before: Any) -> Any:
    """A later version may add fields, but no rows."""
    if not (isinstance(answer, dict) and isinstance(before, dict)):
        return answer
    fields = {name: known_fields(answer.get(name), value) for name, value in before.items()}
    added = {name: value for name, value in answer.items() if name not in before}
    return fields if all(not name.isdigit() for name in added) else {**fields, **added}


def test_commands_show_schedules_logs_and_deliveries(upgraded: Upgraded) -> None:
    of_api = upgraded.expected["answers"]["operator"]
    next_fires = {key: one["next_fire_at"] for key, one in of_api["schedules"].items()}
    schedules = upgraded.commands["schedules"]["schedules"]
    assert {str(one["id"]): seconds_of(one["next_fire_at"]) for one in schedules} == next_fires
    deliveries = upgraded.commands["deliveries"]["deliveries"]
    assert {str(one["id"]) for one in deliveries} == set(of_api["deliveries"])
    printed = [line["text"] for line in upgraded.commands["log"]["output"]]
    assert printed == [f"line {number:05} of many" for number in range(1, 3001)]


def seconds_of(text: str | None) -> int | None:
    return None if text is None else int(datetime.fromisoformat(text).astimezone(UTC).timestamp())


def test_tokens_have_the_same_rights_as_before(running: Running) -> None:
    assert running.client("bootstrap").get("/v1/tenants")["tenants"]
    assert running.client("dashboard").get("/v1/scheduler")
    # A token that may only read, a revoked one, and one of a disabled tenant.
    for name, status in {"dashboard": 403, "old": 401, "closed": 403}.items():
        assert status_of(running.client(name), "/v1/agents/woken/run") == status, name


def status_of(client: Client, path: str) -> int:
    try:
        client.post(path, {})
    except urllib.error.HTTPError as error:
        return error.code
    return 202


@pytest.mark.parametrize("kind", PAGES)
def test_the_page_of_a_run_links_to_its_cause(
    upgraded: Upgraded, page: Callable[[str], str], kind: str
) -> None:
    """A run whose cause was removed since still has a page."""
    expected = upgraded.expected
    found = [(item, cause) for item, cause in expected["causes"].items() if cause["kind"] == kind]
    runs = [(expected["runs_of_work"][item][0], cause) for item, cause in found]
    assert runs
    chosen = [next((run, cause) for run, cause in runs if not cause.get("missing"))]
    chosen += [(run, cause) for run, cause in runs if cause.get("missing")]
    for run, cause in chosen:
        shown = page(f"/admin/runs/{run}/change/")
        key = cause["schedule"] if kind == "firing" else cause["id"]
        link = f'href="/admin/{PAGES[kind]}/{key}/change/'
        assert link in shown or cause.get("missing"), (run, cause)


# --- new runs and deliveries ----------------------------------------------------------------


def test_a_new_run_is_given_the_credentials_and_finishes(running: Running) -> None:
    done = running.upgraded.stack.manage("run", "keeper", "--wait")
    values = {name: value for _, name, value in running.upgraded.expected["credentials"]}
    sums = [
        hashlib.sha256(values[name].encode()).hexdigest()
        for name in ("github_token:work", "form_key")
    ]
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()[-3:-1]] == sums


def test_an_old_run_is_run_again(running: Running) -> None:
    old = running.upgraded.run_of("woken", trigger="rule")
    asked = running.client("operator").post(f"/v1/runs/{old}/rerun", {})
    (run,) = running.ended_runs(f"r.work_item_id = {asked['work_item_id']}", count=1)
    assert run["requested_by"] == f"token operator, rerun of run {old}"
    assert running.client("operator").read(f"/v1/runs/{run['id']}/output") == b"awake\n"


def test_work_that_waited_starts_when_its_agent_is_resumed(running: Running) -> None:
    client = running.client("operator")
    client.post("/v1/agents/busy/resume", {})
    runs = running.ended_runs("a.name = 'busy'", count=2)
    prompts = [client.read(f"/v1/runs/{run['id']}/output").splitlines()[1] for run in runs]
    assert prompts == [b"waits", b"waits behind it"]


def test_webhook_secrets_and_delivery_ids_stay_valid(running: Running) -> None:
    secret = running.upgraded.expected["webhook_secrets"]["repo"]
    old = running.upgraded.expected["answers"]["operator"]["deliveries"]["1"]
    again = running.deliver(secret, old["delivery_id"], old["body"].encode())
    assert again["delivery"] == old["id"] and again["duplicate"] is True
    new = running.deliver(secret, "after-the-upgrade", old["body"].encode())
    assert new["delivery"] > old["id"] and new["matched"] == 2
    with pytest.raises(urllib.error.HTTPError, match="401"):
        running.deliver("a secret of repo that was revoked", "refused", b"{}")
