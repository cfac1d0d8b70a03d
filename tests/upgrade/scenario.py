"""What happens in the Drover of version 0.1.0 before its database is kept for the upgrade tests.

Every row is written by that version: by its commands, its HTTP API, its webhooks, its runs and
rules. Three kinds of changes are made in the database itself, because they would take days:
a schedule is made overdue, and a work item and a delivery are made old enough for retention.
"""

import json
import os
import re
import signal
import urllib.error
import urllib.parse
import urllib.request
from datetime import UTC, datetime, timedelta
from pathlib import Path

from operator_0_1_0 import Operator, stamp

CREDENTIALS = {
    ("default", "github_token:work"): "ghp_upgradeTests0123456789",
    ("default", "form_key"): 'the key of the forms, \u00e4\u00f6\u00fc "quoted"',
    ("acme", "deploy_key"): "the first of two lines\nand the second of them\n",
}
WEBHOOK_SECRETS = {"repo": "the first secret of repo", "acme-hook": "the secret of acme"}
REVOKED_SECRET = "a secret of repo that was revoked"
HERE = Path(__file__).resolve().parent


class Scenario(Operator):
    def play(self) -> None:
        self.tokens()
        self.secrets()
        self.queue()
        self.people()
        self.time()
        self.webhooks()
        self.rules()
        self.skipped_firings()
        self.other_tenants()
        self.bad_endings()
        self.old_rows()
        self.until_idle()

    # --- accounts and secrets ---------------------------------------------------------------

    def tokens(self) -> None:
        made = {"bootstrap": self.stack.env["DROVER_BOOTSTRAP_TOKEN"]}
        for name, scope in {"operator": "operate", "dashboard": "read", "old": "admin"}.items():
            said = self.manage("token", "create", name, "--scope", scope, "--json")
            made[name] = json.loads(said)["token"]
        self.manage("token", "revoke", "old")
        for tenant in ("acme", "closed"):
            said = self.manage("tenant", "create", tenant, "--json")
            made[tenant] = json.loads(said)["tokens"][0]["token"]
        self.kept["tokens"] = made
        self._enter_a_wrong_password()

    def _enter_a_wrong_password(self) -> None:
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        url = f"{self.stack.url}/admin/login/?next=/admin/"
        page = opener.open(url, timeout=20).read().decode()
        asked = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page)
        assert asked is not None
        form = {"username": "admin", "password": "wrong", "csrfmiddlewaretoken": asked[1]}
        opener.open(url, urllib.parse.urlencode(form).encode(), timeout=20).close()
        self.wait_for("SELECT 1 FROM drover_login_failure")

    def secrets(self) -> None:
        file = self.stack.data / "value"
        for (tenant, name), value in CREDENTIALS.items():
            file.write_text(value)
            self.manage("credential", "set", name, "--file", str(file), "--tenant", tenant)
        file.unlink()
        given = (str(self.stack.project), WEBHOOK_SECRETS, REVOKED_SECRET)
        code = (HERE / "other_tenants.py").read_text()
        self.manage("shell", "-c", f"{code}\nmake{given!r}")
        kept = [[*key, value] for key, value in CREDENTIALS.items()]
        self.kept |= {"credentials": kept, "webhook_secrets": WEBHOOK_SECRETS}

    # --- work -------------------------------------------------------------------------------

    def queue(self) -> None:
        """One item dropped, two cleared, one dropped by a full queue, two that wait."""
        self.manage("pause", "busy", "--note", "its work waits for the upgrade")
        first = json.loads(self.manage("run", "busy", "--prompt", "to be dropped", "--json"))
        self.manage("queue", "drop", str(first["work_item"]))
        for prompt in ("to be cleared", "to be cleared, too"):
            self.manage("run", "busy", "--prompt", prompt)
        self.manage("queue", "clear", "busy")
        for prompt in ("too old for the queue", "waits", "waits behind it"):
            self.manage("run", "busy", "--prompt", prompt)

    def people(self) -> None:
        """Runs by a command, by the API, by a rerun, by a message; and calls between agents."""
        self.manage("run", "retried")
        self.manage("run", "late")
        for agent in ("printer", "counter", "keeper", "planner"):
            self.manage("run", agent, "--prompt", f"for {agent}", "--wait")
        self.manage("run", "failing", "--wait", code=None)
        self.manage("rerun", str(self.newest_run("printer")))
        self.api("POST", f"/v1/runs/{self.newest_run('failing')}/rerun")
        # A key of a client that looks like a key of Drover.
        asked = {"Idempotency-Key": "delivery:1:woken"}
        self.api("POST", "/v1/agents/woken/run", {"prompt": "by a token"}, **asked)
        self.api("POST", "/v1/agents/reader/messages", {"text": "becomes work"})
        self.wait_for(
            "SELECT 1 FROM drover_run WHERE agent_id = ? AND state = 'running'",
            self.agents["reader"],
        )
        self.manage("message", "reader", "read by a run")
        self.ended("reader", "succeeded")

    def time(self) -> None:
        """Schedules of every kind and in every state."""
        create = ("schedule", "create")
        self.manage(*create, "again", "in 1 second", "--name", "soon", "-m", "Once")
        self.manage(*create, "failing", "in 1 second", "--name", "fails-once")
        self.manage(
            *create, "printer", "--cron", "0 9 1 * *", "--zone", "Asia/Tokyo", "-m", "\u00e4"
        )
        self.manage(*create, "printer", "on 2040-06-01 at 12:00", "--name", "far")
        self.manage(*create, "printer", "every day at 18:00", "--name", "evening")
        self.manage(*create, "printer", "every 2 hours", "--name", "even", "--jitter", "2%")
        self.manage(*create, "opener", "15m", "--name", "quarter")
        self.manage(*create, "woken", "every 20 minutes", "--name", "called-off")
        self.manage("schedule", "cancel", "called-off")
        self.manage("schedule", "pause", "evening", "--note", "not in summer")
        self.manage("schedule", "pause", "weekly", "--until", "on 2040-01-01 at 00:00")
        options = ("--name", "breaker", "--pause-after-failures", "1")
        self.manage(*create, "failing", "every 2 hours", *options)
        self.fire("breaker")
        self.wait_for("SELECT 1 FROM drover_schedule WHERE name = 'breaker' AND state = 'paused'")
        self.wait_for(
            "SELECT 1 FROM drover_schedule WHERE name = 'fails-once' AND state = 'failed'"
        )
        self.manage("schedule", "retry", "fails-once")
        self.wait_for("SELECT 1 FROM drover_schedule WHERE name = 'soon' AND state = 'completed'")

    # --- webhooks ---------------------------------------------------------------------------

    def webhooks(self) -> None:
        secret = WEBHOOK_SECRETS["repo"]
        repository = {"repository": {"full_name": "acme/site"}, "sender": {"login": "ann"}}
        issue = {"number": 7, "title": "It is \u00fcber slow", "body": "Very\nslow", "labels": []}
        opened = {**repository, "action": "opened", "issue": issue}
        for number, (event, payload) in enumerate(
            [
                ("issues", opened),
                ("issues", opened),
                ("pull_request", {**repository, "action": "closed", "pull_request": issue}),
                ("push", {**repository, "ref": "refs/heads/main", "commits": []}),
                ("ping", {"zen": "Keep it simple."}),
            ]
        ):
            self.github(f"delivery-{number}", event, json.dumps(payload).encode(), secret)
        self.github("delivery-0", "issues", json.dumps(opened).encode(), secret)  # once more
        self.github("delivery-9", "issues", b"not JSON at all", secret)
        self.github("delivery-10", "issues", b"{}", "a wrong secret")
        self.generic("forms", CREDENTIALS["default", "form_key"], "answer-1")
        self.generic("acme-hook", WEBHOOK_SECRETS["acme-hook"], "from-acme")
        self.wait_for("SELECT 1 FROM drover_delivery WHERE delivery_id = 'from-acme'")
        first = self.stack.rows("SELECT min(id) AS id FROM drover_delivery")[0]["id"]
        self.manage("deliveries", "replay", str(first))
        self.api("POST", f"/v1/deliveries/{first}/replay")

    # --- rules ------------------------------------------------------------------------------

    def rules(self) -> None:
        """Each rule has fired; then one of them leaves the file, and messages are held back."""
        self.wait_for("SELECT 1 FROM drover_message WHERE sender = 'rule tell'")
        self.manage("rules", "silence", "on")
        by_rule = "SELECT 1 FROM drover_run WHERE requested_by = ? AND state = 'succeeded'"
        for name in ("wake", "leaving"):
            self.wait_for(by_rule, f"rule {name}")
        self.wait_for("SELECT 1 FROM drover_rule WHERE name = 'broken' AND status = 'backoff'")
        self.wait_for("SELECT 1 FROM drover_rule WHERE name = 'disk' AND tail <> ''")
        file = self.stack.project / "scheduler.rules"
        lines = file.read_text().splitlines()
        file.write_text("".join(f"{x}\n" for x in lines if not x.startswith("[leaving]")))
        left = "SELECT 1 FROM drover_rule WHERE name = 'leaving'"
        self.wait_for(f"SELECT 1 FROM drover_tenant WHERE NOT EXISTS ({left})")

    # --- firings that start nothing ---------------------------------------------------------

    def skipped_firings(self) -> None:
        create = ("schedule", "create")
        for agent in ("busy", "late", "spender"):
            self.manage(*create, agent, "every 3 hours", "--name", f"of-{agent}")
        self.manage("run", "spender", "--wait", code=None)
        self.api("POST", "/v1/agents/late/scale", {"scale": 0})
        for agent in ("busy", "late", "spender"):
            self.fire(f"of-{agent}")
        # The first occupies the only slot; the others find it taken.
        self.manage(*create, "endless", "every 3 hours", "--name", "occupies")
        self.manage(*create, "endless", "every 4 hours", "--name", "at-capacity")
        self.manage(*create, "endless", "every 5 hours", "--name", "queues", "--overlap", "queue")
        self.fire("occupies")
        running = "SELECT 1 FROM drover_run WHERE agent_id = ? AND state = 'running'"
        self.wait_for(running, self.agents["endless"])
        for name in ("occupies", "at-capacity", "queues"):
            self.fire(name)
        long_ago = stamp(datetime.now(UTC) - timedelta(hours=13))
        overdue = "UPDATE drover_schedule SET next_fire_at = ? WHERE name = 'often'"
        self.stack.rows(overdue, long_ago)
        reasons = ("paused", "disabled", "budget", "already_running", "at_capacity", "missed")
        for reason in reasons:
            self.wait_for("SELECT 1 FROM drover_firing WHERE reason = ?", reason)
        self.wait_for("SELECT 1 FROM drover_firing WHERE outcome = 'queued'")

    # --- other tenants ----------------------------------------------------------------------

    def other_tenants(self) -> None:
        acme, closed = self.kept["tokens"]["acme"], self.kept["tokens"]["closed"]
        once = {"Idempotency-Key": "acme-1"}
        self.api("POST", "/v1/agents/reporter/run", {"prompt": "of acme"}, acme, **once)
        daily = {
            "schedule": "every day at 07:00 Europe/Paris",
            "message": "Report",
            "name": "daily",
        }
        for token in (acme, closed):
            self.api("POST", "/v1/schedules", daily, token, **once)
        self.manage("tenant", "disable", "closed")
        tenant = "SELECT id FROM drover_tenant WHERE name = 'closed'"
        due = f"UPDATE drover_schedule SET next_fire_at = ? WHERE tenant_id = ({tenant})"
        self.stack.rows(due, stamp(datetime.now(UTC)))
        self.wait_for("SELECT 1 FROM drover_firing WHERE reason = 'tenant_disabled'")

    # --- endings ----------------------------------------------------------------------------

    def bad_endings(self) -> None:
        """A run that is lost with its worker, then the queued one of the same agent is stopped."""
        worker = "SELECT pid FROM drover_worker WHERE ended_at IS NULL ORDER BY id DESC"
        os.kill(self.stack.rows(worker)[0]["pid"], signal.SIGKILL)
        self.ended("endless", "lost")
        running = "SELECT id FROM drover_run WHERE agent_id = ? AND state = 'running'"
        (run,) = self.wait_for(running, self.agents["endless"])
        self.manage("stop", f"run:{run['id']}", "--timeout", "30")
        self.ended("endless", "stopped")
        self.ended("late", "timed_out")
        self.ended("retried", "succeeded")

    def old_rows(self) -> None:
        """Retention removes a run that was rerun, and a delivery that runs were started by."""
        self.manage("run", "woken", "--prompt", "to be removed", "--wait")
        run = self.newest_run("woken")
        self.manage("rerun", str(run))
        long_ago = stamp(datetime.now(UTC) - timedelta(days=40))
        item = "SELECT work_item_id FROM drover_run WHERE id = ?"
        old = f"UPDATE drover_work_item SET finished_at = ? WHERE id = ({item})"
        self.stack.rows(old, long_ago, run)
        delivery = "UPDATE drover_delivery SET received_at = ? WHERE delivery_id = 'delivery-1'"
        self.stack.rows(delivery, long_ago)
        self.manage("retention")
        gone = "SELECT 1 FROM drover_run WHERE id = ?"
        assert not self.stack.rows(gone, run)
        self.kept["removed_run"] = run

    def until_idle(self) -> None:
        """Nothing runs, and what waits belongs to the paused agent."""
        idle = (
            "SELECT 1 FROM drover_tenant WHERE NOT EXISTS (SELECT 1 FROM drover_work_item "
            "WHERE state = 'admitted' OR (state = 'queued' AND agent_id <> ?)) "
            "AND NOT EXISTS (SELECT 1 FROM drover_firing WHERE outcome = '')"
        )
        self.wait_for(idle, self.agents["busy"])
