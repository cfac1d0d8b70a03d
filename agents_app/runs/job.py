"""A run and its ending as values; no tables."""

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from agents_app.harness import Report
from agents_app.runners import Outcome, verdict

# Names the kind of secret; the run's id in the token makes an index on the hash unnecessary.
TOKEN_PREFIX = "drover_run_"  # noqa: S105


def new_secret() -> str:
    return secrets.token_urlsafe(32)


def secret_hash(secret: str) -> str:
    # No salt: a secret is random and long.
    return hashlib.sha256(secret.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Job:
    """A run that holds a slot, with the values that executing and finishing it require."""

    run_id: int
    tenant_id: int
    agent_id: int
    work_item_id: int
    schedule_id: int | None
    trigger: str
    attempt: int
    rerun: int
    revision: int
    timeout_seconds: float
    prompt: str
    context: str
    requested_by: str
    trace_id: str
    depth: int = 0
    parent_run_id: int | None = None
    # The agent's name, and the firing of its schedule: for the log.
    agent: str = ""
    firing_id: int | None = None
    # Proves the identity of the run; made at its start and given to its program alone.
    secret: str = field(default="", repr=False)

    @property
    def token(self) -> str:
        return f"{TOKEN_PREFIX}{self.run_id}_{self.secret}"

    @property
    def log_context(self) -> dict[str, Any]:
        """Fields of every log line about the run."""
        return {
            "trace_id": self.trace_id,
            "tenant_id": self.tenant_id,
            "agent_id": self.agent_id,
            "agent": self.agent,
            "run_id": self.run_id,
        }

    @property
    def secret_sha256(self) -> str:
        return secret_hash(self.secret)


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run ended."""

    state: str
    error: str = ""
    exit_code: int | None = None
    pid: int | None = None
    wants_rerun: bool = False
    # How the program was confined, see agents_app.runners.promises; empty: not known, a container.
    sandbox: str = ""
    output_bytes: int = 0
    output_cut_bytes: int = 0
    # The report of the tool, if it writes one.
    report: Report | None = None
    # Signals that the run left in files; None: it left none.
    file_signals: Mapping[str, str] | None = None
    # The metadata of the run as JSON, if the end changes it.
    metadata_json: str | None = None
    # A hook decided: the signals of the run do not change the state any more.
    is_final: bool = False

    @property
    def stores_nothing(self) -> bool:
        """Whether only the state of the run changes: no report, signals or metadata."""
        return self.report is None and self.file_signals is None and self.metadata_json is None

    def after_signals(self, exit_signal: int | None, *, rerun_requested: bool) -> "Ending":
        """The ending as the signals of the run change it: `exit` has priority over `rerun`."""
        if self.is_final or self.state not in {"succeeded", "failed"}:
            return self
        if exit_signal is not None:
            result = verdict(Outcome("exited", exit_signal))
            ending = replace(self, exit_code=exit_signal, wants_rerun=False)
            return replace(ending, state=result.state, error=result.error)
        wants_rerun = rerun_requested and self.state == "succeeded"
        return replace(self, wants_rerun=self.wants_rerun or wants_rerun)
