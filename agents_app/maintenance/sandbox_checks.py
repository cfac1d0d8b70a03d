"""The check of doctor about the sandbox: what this kernel promises, the agents without one, and
whether limits hold from the beginning of a run."""

from datetime import datetime

from agents_app.maintenance.findings import OK, WARNING, WRONG, CheckResults
from agents_app.models import Agent
from agents_app.runners import MEANINGS, NONE, Kernel, has_gate, this_kernel

ADVICE = "use Linux 6.12 or newer, or `runtime: {type: container}` for code that you do not trust"
LATE_LIMITS = "limits hold only from shortly after the start of a program: it cannot wait for them"
GATE_ADVICE = (
    "needs x86_64 or aarch64 and `sysctl vm.memfd_noexec=0`; or `runtime: {type: container}`"
)


def check_sandbox(_: datetime) -> CheckResults:
    kernel = this_kernel()
    yield from _promises(kernel)
    if not has_gate():
        yield WARNING, LATE_LIMITS, GATE_ADVICE
    agents = Agent.objects.filter(removed_at__isnull=True, scale__gt=0)
    confined = [agent for agent in agents if agent.runtime.get("type") != "container"]
    modes = {agent.name: agent.runtime.get("sandbox", {}).get("mode", "auto") for agent in confined}
    without = sorted(name for name, mode in modes.items() if mode == "off")
    if without:
        advice = "remove `sandbox: off`, or add the paths they need: `sandbox: {read: [...]}`"
        yield WARNING, f"switched off by: {', '.join(without)}", advice
    for name in sorted(name for name, mode in modes.items() if mode == "required"):
        if kernel.missing:
            yield WRONG, f"{name} requires every promise: its runs fail", ADVICE


def _promises(kernel: Kernel) -> CheckResults:
    if kernel.summary == NONE:
        yield WARNING, "this kernel has none: runs have all rights of their user", ADVICE
    for promise in kernel.missing if kernel.summary != NONE else ():
        yield WARNING, f"does not hold on this kernel: {MEANINGS[promise]}", ADVICE
    if not kernel.missing:
        yield OK, f"every promise holds (Landlock {kernel.landlock})", ""
