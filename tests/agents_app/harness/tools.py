"""Stand-ins for Claude Code and Codex: programs of that name that print recorded output."""

import json
import os
from pathlib import Path
from typing import Any

from agents_app.launch import prepare

# Records its arguments, prints the prepared output, and exits with the prepared code.
_TOOL = """#!/bin/sh
for argument in "$@"; do printf '%s\\0' "$argument"; done > "{notes}/argv"
{read_stdin}
cat "{notes}/says"
exit {code}
"""


class Tools:
    """A directory of programs that runs find first on their PATH."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.directory.mkdir()

    def install(self, name: str, *said: Any, code: int = 0, reads: bool = True) -> "Tool":
        notes = self.directory / f"{name}.notes"
        notes.mkdir()
        lines = [line if isinstance(line, str) else json.dumps(line) for line in said]
        (notes / "says").write_text("".join(f"{line}\n" for line in lines))
        read_stdin = f'cat > "{notes}/stdin"' if reads else ""
        program = self.directory / name
        program.write_text(_TOOL.format(notes=notes, read_stdin=read_stdin, code=code))
        program.chmod(0o755)
        return Tool(notes)


class Tool:
    def __init__(self, notes: Path) -> None:
        self._notes = notes

    @property
    def arguments(self) -> list[str]:
        return (self._notes / "argv").read_text().split("\0")[:-1]

    @property
    def stdin(self) -> str:
        return (self._notes / "stdin").read_text()


def put_on_path(directory: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("PATH", f"{directory}:{os.environ['PATH']}")
    prepare._server_environment.cache_clear()


# --- what they print, as recorded ---------------------------------------------------------------


def claude_message(key: str, tokens: int, text: str = "...") -> dict[str, Any]:
    usage = {
        "input_tokens": tokens,
        "cache_creation_input_tokens": 10,
        "cache_read_input_tokens": 20,
        "output_tokens": 5,
        "service_tier": "standard",
    }
    content = [{"type": "text", "text": text}]
    message = {"id": key, "type": "message", "role": "assistant", "content": content}
    return {
        "type": "assistant",
        "message": message | {"model": "claude-sonnet", "usage": usage},
        "parent_tool_use_id": None,
        "session_id": "s",
    }


def claude_result(text: str = "All is well.", **changes: Any) -> dict[str, Any]:
    usage = {
        "input_tokens": 100,
        "cache_creation_input_tokens": 200,
        "cache_read_input_tokens": 3000,
        "output_tokens": 50,
        "server_tool_use": {"web_search_requests": 0},
    }
    return {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "duration_ms": 2300,
        "num_turns": 2,
        "result": text,
        "session_id": "s",
        "total_cost_usd": 0.12345678,
        "usage": usage,
        **changes,
    }


CLAUDE_INIT = {"type": "system", "subtype": "init", "cwd": "/x", "tools": ["Bash"], "model": "m"}


def codex_says(text: str) -> dict[str, Any]:
    item = {"id": "item_1", "type": "agent_message", "text": text}
    return {"type": "item.completed", "item": item}


def codex_turn(**usage: int) -> dict[str, Any]:
    return {"type": "turn.completed", "usage": usage}


CODEX_START = [{"type": "thread.started", "thread_id": "t"}, {"type": "turn.started"}]
