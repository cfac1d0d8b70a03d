"""`hooks` of a herdctl agent as hooks of Drover, with the credentials that they need; pure.

A hook that Drover cannot run is reported and left out: the agent works without it.
"""

from collections.abc import Callable, Mapping
from typing import Any

from agents_app.conf import PROGRAM
from agents_app.formats.herdctl.interpolate import interpolate_optional, variables_in
from agents_app.secrets import credential_providing
from agents_app.skills import (
    MAX_REQUEST_SECONDS,
    OWN_HEADERS,
    Document,
    KeyPath,
    Layer,
    Problems,
    is_valid_hook,
)

LISTS = ("after_run", "on_error")
DEFAULT_BOT_TOKEN = "SLACK_BOT_TOKEN"  # noqa: S105
# herdctl starts the commands in the directory of the agent's file.
_IN_AGENT_DIRECTORY = 'cd "$DROVER_AGENT_DIR" || exit 1\n'

Say = Callable[[KeyPath, str, str], None]
# The value with the variables replaced; the path is that of the value.
Interpolate = Callable[[Any, KeyPath], Any]


class HookTranslation:
    """The hooks of one merged agent document."""

    def __init__(
        self, document: Document, env: Mapping[str, str], interpolated: Interpolate, say: Say
    ) -> None:
        self.document = document
        self.env = env
        self.interpolated = interpolated
        self.say = say
        self.credentials: list[str] = []

    def fields(self) -> dict[str, Any]:
        """The field `hooks` of Drover."""
        hooks = self.document.data.get("hooks") or {}
        lists = {name: self._list(name, hooks.get(name) or []) for name in LISTS}
        given = {name: found for name, found in lists.items() if found}
        return given | ({"credentials": self.credentials} if self.credentials else {})

    def _list(self, name: str, raw: list[dict[str, Any]]) -> list[dict[str, Any]]:
        found = [self._hook(hook, ("hooks", name, number)) for number, hook in enumerate(raw)]
        return [hook for hook in found if hook is not None]

    def _hook(self, raw: dict[str, Any], at: KeyPath) -> dict[str, Any] | None:
        # A header is where a secret belongs: its references stay references.
        rest = {key: value for key, value in raw.items() if key != "headers"}
        hook = dict(self.interpolated(rest, at))
        hook |= self._time(hook, at)
        credentials: list[str] | None = []
        if hook["type"] == "shell":
            hook |= self._command(hook)
        elif hook["type"] == "webhook":
            hook["headers"] = self._headers(raw.get("headers") or {}, at)
            names = sorted(variables_in(hook["headers"]))
            credentials = self._credentials(names, (*at, "headers"))
        else:
            token = hook.get("bot_token_env") or DEFAULT_BOT_TOKEN
            credentials = self._credentials([token], (*at, "bot_token_env"))
        if credentials is None or not self._is_valid(hook, credentials, at):
            return None
        self.credentials += [one for one in credentials if one not in self.credentials]
        return hook

    def _time(self, hook: dict[str, Any], at: KeyPath) -> dict[str, Any]:
        """herdctl counts milliseconds."""
        given = hook.pop("timeout", None)
        if given is None:
            return {}
        seconds = given / 1000
        if hook["type"] != "shell" and seconds > MAX_REQUEST_SECONDS:
            why = f"a request has {MAX_REQUEST_SECONDS} s at most"
            self.say((*at, "timeout"), why, f"write {MAX_REQUEST_SECONDS}000 or less")
            seconds = MAX_REQUEST_SECONDS
        return {"timeout_seconds": seconds}

    def _command(self, hook: dict[str, Any]) -> dict[str, Any]:
        command = hook["command"]
        # With a `working_directory` the hook starts where the run starts.
        start = "" if self.document.data.get("working_directory") else _IN_AGENT_DIRECTORY
        name = hook.get("name") or " ".join(command.split())[:200]
        return {"command": f"{start}{command}", "name": name}

    def _headers(self, raw: dict[str, str], at: KeyPath) -> dict[str, str]:
        for name in raw:
            if name.lower() in OWN_HEADERS:
                why = "this header is set by Drover"
                self.say((*at, "headers", name), why, "remove the header")
        return {
            name: interpolate_optional(value, self.env)
            for name, value in raw.items()
            if name.lower() not in OWN_HEADERS
        }

    def _credentials(self, variables: list[str], at: KeyPath) -> list[str] | None:
        """The credentials with these variables; None after a report if there cannot be one."""
        found: list[str] = []
        for variable in variables:
            credential = credential_providing(variable)
            if credential is None:
                why = f"{variable} cannot be the variable of a credential; the hook is left out"
                self.say(at, why, "rename it: capital letters, digits and _")
                return None
            why = f"{variable} is the value of the credential {credential}, not a variable"
            self.say(at, why, f"{PROGRAM} credential set {credential}")
            found.append(credential)
        return found

    def _is_valid(self, hook: dict[str, Any], credentials: list[str], at: KeyPath) -> bool:
        problems = Problems()
        if is_valid_hook(hook, credentials, Layer(self.document, problems), at):
            return True
        for problem in problems.found:
            path, _, why = problem.reason.partition(": ")
            self.say(at, f"the hook is left out: {path.rpartition('.')[2]}: {why}", "correct it")
        return False
