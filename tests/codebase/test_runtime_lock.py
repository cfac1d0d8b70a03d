"""`make run` installs requirements.lock and nothing else: every part must start with that alone."""

import os
import subprocess
import sys

import pytest

from tests.codebase.source import ROOT

# Hides every installed package that the lock does not name, as if it were not there.
ONLY_THE_LOCK = """
import importlib, importlib.metadata, re, sys
def canonical(name): return re.sub(r"[-_.]+", "-", name).lower()
locked = {canonical(line.split("==")[0]) for line in open("requirements.lock") if "==" in line}
owners = importlib.metadata.packages_distributions()
class Hidden:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top in owners and not any(canonical(owner) in locked for owner in owners[top]):
            raise ModuleNotFoundError(f"{top} is not in requirements.lock")
sys.meta_path.insert(0, Hidden())
for name in sys.argv[1:]:
    importlib.import_module(name)
"""
PARTS = {
    "worker": ["agents_app.stack.serve", "kombu.transport.redis", "agents_app.tasks"],
    "beat": ["agents_app.stack.serve", "scheduler_project.beat", "kombu.transport.redis"],
    "gateway": ["gateway_app.serve", "scheduler_project.asgi", "scheduler_project.urls"],
    "flower": ["flower.command", "agents_app.stack.monitor", "kombu.transport.redis"],
    "": [
        "manage",
        "psycopg_pool",
        "agents_app.management.commands.up",
        "agents_app.console.screen",
    ],
}


def _start(role: str, modules: list[str], data: str) -> subprocess.CompletedProcess[str]:
    env = {"PATH": os.environ["PATH"], "DROVER_DATA": data, "DROVER_ROLE": role}
    env["DJANGO_SETTINGS_MODULE"] = "scheduler_project.settings"
    code = ONLY_THE_LOCK
    if role != "flower":
        code = code.replace("for name in", "import django; django.setup()\nfor name in", 1)
    command = [sys.executable, "-c", code, *modules]
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)


@pytest.mark.parametrize("role", PARTS, ids=lambda role: role or "commands")
def test_a_part_finds_all_it_imports_in_the_lock(role, tmp_path):
    done = _start(role, PARTS[role], str(tmp_path))
    assert done.returncode == 0, done.stderr[-2000:]


def test_what_only_the_tests_need_is_hidden(tmp_path):
    done = _start("", ["pytest"], str(tmp_path))
    assert "pytest is not in requirements.lock" in done.stderr
