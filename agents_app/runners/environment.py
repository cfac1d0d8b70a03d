"""The environment of a run: an allow-list of the server's variables, and the run's own."""

from collections.abc import Mapping
from pathlib import Path

PASSED_ON = ("HOME", "LANG", "LC_ALL", "TERM", "TZ", "USER", "LOGNAME")
# The alias PROMPT is for short prompts: the kernel refuses a single variable above 128 KiB.
LONGEST_PROMPT_VARIABLE = 100_000
DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def base_environment(server: Mapping[str, str]) -> dict[str, str]:
    """The variables of the server that any program expects."""
    kept = {name: server[name] for name in PASSED_ON if name in server}
    return {"LANG": "C.UTF-8", **kept, "PATH": server.get("PATH", DEFAULT_PATH)}


def run_environment(
    base: Mapping[str, str],
    declared: Mapping[str, str],
    *,
    run_id: int,
    agent: str,
    agent_dir: str,
    state_dir: Path,
    trigger: str,
    schedule_id: int | None,
    attempt: int,
    timeout_seconds: float,
    prompt: str,
    prompt_file: Path,
    trace_id: str,
    gateway_url: str,
    gateway_socket: Path | None,
    signal_dir: str,
    token: str,
) -> dict[str, str]:
    env = {
        **base,
        **declared,
        "DROVER_RUN_ID": str(run_id),
        "DROVER_AGENT": agent,
        "DROVER_AGENT_DIR": agent_dir,
        "DROVER_STATE_DIR": str(state_dir),
        "DROVER_TRIGGER": trigger,
        "DROVER_SCHEDULE_ID": "" if schedule_id is None else str(schedule_id),
        "DROVER_ATTEMPT": str(attempt),
        "DROVER_PROMPT_FILE": str(prompt_file),
        "DROVER_GATEWAY_URL": gateway_url,
        "DROVER_GATEWAY_SOCKET": str(gateway_socket or ""),
        "DROVER_RUN_TOKEN": token,
        "DROVER_TRACE_ID": trace_id,
        "TRACEPARENT": f"00-{trace_id}-{run_id:016x}-01",
    }
    return env | _aliases(gateway_url, signal_dir, timeout_seconds, prompt)


def _aliases(
    gateway_url: str, signal_dir: str, timeout_seconds: float, prompt: str
) -> dict[str, str]:
    """The names that agents written for Action Llama use."""
    env = {
        "GATEWAY_URL": gateway_url,
        "AL_SIGNAL_DIR": signal_dir,
        "TIMEOUT_SECONDS": f"{timeout_seconds:g}",
    }
    if len(prompt.encode(errors="replace")) <= LONGEST_PROMPT_VARIABLE and "\0" not in prompt:
        env["PROMPT"] = prompt
    return env
