"""Real tools run unchanged in the sandbox: git, Python, node, npm, Claude Code and Codex."""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents_app.harness import HARNESSES
from agents_app.runners import this_kernel
from agents_app.secrets.credentials import set_credential
from agents_app.secrets.types import parse_name
from agents_app.worker.execute import Host
from tests.agents_app.executing import do, printed
from tests.agents_app.fleet import NOON, Fleet
from tests.parts.missing import missing
from tests.parts.scripted_model import ANSWER, ScriptedModel, coding_tool

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _landlock() -> None:
    if this_kernel().missing:
        missing("a kernel with Landlock 6", "use Linux 6.12 or newer")


def tool(name: str, command: str) -> str:
    return shutil.which(name) or missing(name, command)


def output_of(fleet: Fleet, host: Host, script: str, **columns: Any) -> str:
    return output_of_command(fleet, host, "sh", "-ec", script, **columns)


def output_of_command(fleet: Fleet, host: Host, *command: str, **columns: Any) -> str:
    alone = {"sandbox": {}}
    run = do(fleet, host, fleet.agent(command=list(command), runtime=alone, **columns))
    assert (run.state, run.sandbox) == ("succeeded", "on"), printed(run.pk, 2) or run.error
    return printed(run.pk)


def test_git_makes_a_repository_and_commits(fleet: Fleet, host: Host):
    tool("git", "apt-get install git")
    script = (
        "git init -q r; cd r; echo x >f; git add f;"
        "git -c user.name=a -c user.email=a@b commit -qm first; git log --format=%s; git gc -q"
    )
    assert output_of(fleet, host, script) == "first\n"


def test_python_uses_its_library_processes_and_temporary_files(fleet: Fleet, host: Host):
    """The Python of Drover may be in a home directory: its prefix must be readable."""
    script = (
        "import multiprocessing as m, sqlite3, ssl, subprocess, tempfile\n"
        "if __name__ == '__main__':\n"
        "    with tempfile.TemporaryDirectory() as d: open(d + '/x', 'w').write('x')\n"
        "    with m.get_context('fork').Pool(2) as p: print(sum(p.map(abs, range(4))))\n"
        "    print(subprocess.run(['echo', 'sub'], capture_output=True, text=True).stdout)\n"
    )
    code = f"cat >s.py <<'END'\n{script}END\n{sys.executable} s.py; {sys.executable} -m venv v"
    assert output_of(fleet, host, code) == "6\nsub\n\n"


def test_node_and_npm_run_a_package(fleet: Fleet, host: Host):
    tool("node", "apt-get install nodejs")
    tool("npm", "apt-get install npm")
    script = (
        "npm init -y >/dev/null; npm pkg set scripts.hello='node -e \"console.log(1+1)\"';"
        "npm run -s hello; npm pack --silent"
    )
    assert output_of(fleet, host, script).startswith("2\n")


# --- coding agents --------------------------------------------------------------------------


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel("git init -q r && echo from-the-tool > r/file && cat r/file") as started:
        yield started


def test_claude_code_calls_its_tools(fleet: Fleet, host: Host, model: ScriptedModel):
    claude = coding_tool("claude")
    argv = HARNESSES["claude-code"].argv("", ("--allowedTools", "Bash"))
    env = {
        "ANTHROPIC_BASE_URL": model.url,
        "ANTHROPIC_API_KEY": "for-a-scripted-model",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }
    agent = fleet.agent(
        harness="claude-code",
        command=[claude, *argv[1:]],
        env=env,
        instructions="Do it.",
        runtime={"sandbox": {}},
    )
    run = do(fleet, host, agent)
    assert run.state == "succeeded", printed(run.pk) + printed(run.pk, 2)
    assert (run.sandbox, run.return_value) == ("on", ANSWER)
    assert [result["content"] for result in model.tool_results] == ["from-the-tool"]


def test_codex_answers_with_the_key_of_the_credential(
    fleet: Fleet, host: Host, model: ScriptedModel
):
    """Guard: Codex reads CODEX_API_KEY; with OPENAI_API_KEY alone it sends no key at all."""
    codex = coding_tool("codex")
    key = "sk-for-a-scripted-model"
    set_credential(fleet.tenant, parse_name("openai_key"), {"value": key}, "ann", NOON)
    arguments = ("-c", f'openai_base_url="{model.url}/v1"')
    argv = HARNESSES["codex"].argv("", arguments)
    agent = fleet.agent(
        harness="codex",
        command=["codex", *argv[1:]],
        credentials=["openai_key"],
        env={"PATH": f"{Path(codex).parent}:{os.environ['PATH']}"},
        instructions="Do it.",
        runtime={"sandbox": {}},
    )
    run = do(fleet, host, agent)
    assert run.state == "succeeded", printed(run.pk) + printed(run.pk, 2)
    assert (run.sandbox, run.return_value) == ("on", ANSWER)
    assert (run.tokens_in, run.tokens_cache, run.tokens_out) == (30, 20, 5)
    assert [asked.key for asked in model.asked] == [key]
