"""Pages that begin with nothing: each command in an empty directory, with the real tools."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from agents_app.conf import ROOT
from tests.docs.documented import FROM_NOTHING, NewUser
from tests.parts.scripted_model import ANSWER, ScriptedModel

pytestmark = pytest.mark.slow
WITH_A_TOOL = {"docs/guides/claude-code.md": "claude", "docs/guides/codex.md": "codex"}


@pytest.fixture
def user(tmp_path: Path) -> Iterator[NewUser]:
    made = NewUser.create(tmp_path)
    yield made
    made.end()


@pytest.mark.parametrize("page", sorted(FROM_NOTHING - WITH_A_TOOL.keys()))
def test_the_commands_of_a_page_succeed(page: str, user: NewUser):
    done = user.run_page(ROOT / page)
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}"


def test_the_guide_to_claude_code_starts_it_with_the_key_and_the_tools(user: NewUser):
    with ScriptedModel('drover status "reading"') as model:
        user.install_tool("claude", model)
        done = user.run_page(ROOT / "docs/guides/claude-code.md")
        assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        assert ANSWER in done.stdout
        assert {asked.key for asked in model.asked} == {"sk-ant-an-example-of-a-key"}
        assert [result["is_error"] for result in model.tool_results] == [False]
        # The run goes on without a tool that the guide does not allow.
        model.command = "touch made"
        again = user.run("cd reports && drover run nightly --wait\n")
        assert again.returncode == 0, again.stderr
        assert [result["is_error"] for result in model.tool_results] == [True]
        assert '"permission_denials":[{' in again.stdout


def test_the_guide_to_codex_starts_it_with_the_key(user: NewUser):
    with ScriptedModel() as model:
        user.install_tool("codex", model)
        done = user.run_page(ROOT / "docs/guides/codex.md")
        assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        assert ANSWER in done.stdout
        assert "Codex's own sandbox is off" in done.stdout
        assert {asked.key for asked in model.asked} == {"sk-an-example-of-a-key"}
