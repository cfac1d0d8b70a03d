"""Runs hooks with events: one after the other, each under its own time limit."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

import structlog

from agents_app.conf import CONF
from agents_app.errors import DroverError
from agents_app.launch.hook_context import EventHook, HookContext, applies, as_json
from agents_app.launch.hook_requests import build_request, message_of, reply_problem
from agents_app.launch.hooks import (
    TimedRunner,
    ending_variables,
    hook_problem,
    shell_spec,
    shown,
    write_marker,
)
from agents_app.launch.workdir import add_file
from agents_app.notifications import send_and_wait
from agents_app.runners import OutputSink, RunSpec
from agents_app.runs import Ending

log = structlog.get_logger("drover.hooks")
SHELL_SECONDS = 30.0
REQUEST_SECONDS = 10.0
CONTEXT_FILE = "hook.json"
NO_WORKDIR = "not run: the run has no working directory, because it failed before its start"
NO_GRACE = "not run: the run was stopped without a grace period"


@dataclass(frozen=True, slots=True)
class HookTools:
    """What hooks need; `variables` are those of the agent's credentials.

    `runner` and `spec` are None if the run failed before its working directory was complete."""

    runner: TimedRunner | None
    spec: RunSpec | None
    sink: OutputSink
    clean: Callable[[str], str]
    variables: Mapping[str, str] = field(repr=False)
    announce: Callable[[str], None]


@dataclass(frozen=True, slots=True)
class HookSummary:
    """What became of a list of hooks: `problems` of those that failed, and `fatal` of those whose
    failure fails the run."""

    total: int
    succeeded: int = 0
    skipped: int = 0
    problems: tuple[str, ...] = ()
    fatal: tuple[str, ...] = ()

    @property
    def failed(self) -> int:
        return len(self.problems)


def run_event_hooks(
    name: str,
    hooks: Sequence[EventHook],
    context: HookContext,
    ending: Ending,
    tools: HookTools,
) -> HookSummary:
    """Run the hooks of a list that apply, whether others failed or not; raises no error."""
    summary = HookSummary(len(hooks))
    for hook in hooks:
        if not applies(hook, context):
            summary = replace(summary, skipped=summary.skipped + 1)
            continue
        label = f"hooks.{name}: {label_of(hook)}"
        write_marker(tools.sink, tools.clean(label))
        problem = tools.clean(_run_hook(hook, context, ending, tools))
        write_marker(tools.sink, f"hooks.{name}: {problem or 'done'}")
        if not problem:
            summary = replace(summary, succeeded=summary.succeeded + 1)
            continue
        told = tools.clean(f"{label}: {problem}")
        fatal = summary.fatal if hook.continue_on_error else (*summary.fatal, told)
        summary = replace(summary, problems=(*summary.problems, told), fatal=fatal)
    return summary


def label_of(hook: EventHook) -> str:
    """The name of a hook in the log; of a URL only the host, because the rest may be a secret."""
    if hook.name:
        return hook.name
    if hook.type == "shell":
        return shown(hook.command)
    host = urlsplit(hook.url).hostname if hook.url.startswith("http") else ""
    return " ".join(filter(None, (hook.type, host or hook.channel_id)))


def _run_hook(hook: EventHook, context: HookContext, ending: Ending, tools: HookTools) -> str:
    """The problem, or an empty text."""
    try:
        if hook.type == "shell":
            return _run_command(hook, context, ending, tools)
        if hook.type == "notify":
            tools.announce(hook.message or message_of(context))
            return ""
        return _send(hook, context, tools)
    except (DroverError, OSError) as error:
        return str(error)
    except Exception as error:
        log.exception("hook.broke", hook=hook.type)
        return f"{type(error).__name__}: an error in Drover, see its log"


def _run_command(hook: EventHook, context: HookContext, ending: Ending, tools: HookTools) -> str:
    """The context is on standard input, from a file: a hook that does not read it does not wait."""
    if tools.runner is None or tools.spec is None:
        return NO_WORKDIR
    runner = tools.runner.for_post_hooks(tools.spec.grace_seconds)
    if runner is None:
        return NO_GRACE
    env = {**ending_variables(ending), "DROVER_HOOK_EVENT": context["event"]}
    file = add_file(tools.spec.cwd, CONTEXT_FILE, as_json(context))
    spec = replace(shell_spec(tools.spec, hook.command, env), prompt_file=file)
    return hook_problem(runner.run(spec, tools.sink, hook.timeout_seconds or SHELL_SECONDS))


def _send(hook: EventHook, context: HookContext, tools: HookTools) -> str:
    seconds = hook.timeout_seconds or REQUEST_SECONDS
    if tools.runner is not None and tools.spec is not None:
        runner = tools.runner.for_post_hooks(tools.spec.grace_seconds)
        if runner is None:
            return NO_GRACE
        seconds = min(seconds, runner.seconds_left)
    request = build_request(hook, context, tools.variables)
    request = replace(request, seconds=seconds)
    return reply_problem(hook, send_and_wait(request, CONF.outgoing_hosts))
