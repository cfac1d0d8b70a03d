"""Recognises `claude -p` and `codex exec` in a shell command, to run them with their harness."""

import shlex
from dataclasses import dataclass
from pathlib import PurePosixPath

# What the shell would do with an unquoted or doubly quoted text.
_SHELL_SYNTAX = set("$`;&|()<>*?[]{}~#!\n")
# The time to split a text into words grows with its square.
_MAX_COMMAND = 10_000
_REDIRECTION = ("2>&1", ">&2", "&>", "&>>", ">", ">>", "2>", "2>>")


@dataclass(frozen=True, slots=True)
class _Tool:
    """The options of a tool: those the harness gives itself, and those with a value."""

    harness: str
    own: frozenset[str]
    own_with_value: frozenset[str]
    with_value: frozenset[str]


_CLAUDE = _Tool(
    "claude-code",
    frozenset({"-p", "--print", "--verbose"}),
    frozenset({"--output-format"}),
    frozenset(
        {
            "--add-dir", "--agents", "--allowedTools", "--allowed-tools", "--append-system-prompt",
            "--disallowedTools", "--disallowed-tools", "--fallback-model", "--max-turns",
            "--mcp-config", "--permission-mode", "--settings", "--system-prompt",
        }
    ),
)  # fmt: skip
_CODEX = _Tool(
    "codex",
    frozenset({"--json", "--skip-git-repo-check"}),
    frozenset(),
    frozenset({"-c", "--config", "-p", "--profile", "-s", "--sandbox", "-i", "--image"}),
)


@dataclass(frozen=True, slots=True)
class ModelCommand:
    """A call of a coding agent; `redirections` are left out, because Drover keeps the output."""

    harness: str
    prompt: str
    model: str = ""
    arguments: tuple[str, ...] = ()
    redirections: tuple[str, ...] = ()


def recognise_model_command(command: str, stdin: str | None = None) -> ModelCommand | None:
    """The call that the whole command consists of; None if the command does anything else.

    The prompt is an argument in quotes, or `stdin`."""
    if len(command) > _MAX_COMMAND or not mentions_model(command):
        return None
    parts = _split_redirections(command)
    if parts is None:
        return None
    words, redirections = parts
    if len(words) < 2:
        return None
    program = PurePosixPath(words[0]).name
    if program == "claude" and {"-p", "--print"} & set(words):
        return _read(_CLAUDE, words[1:], redirections, stdin)
    if program == "codex" and words[1] in ("exec", "e"):
        return _read(_CODEX, words[2:], redirections, stdin)
    return None


def mentions_model(text: str) -> bool:
    """Whether a word of the text is the program of a coding agent."""
    words = text.replace('"', " ").replace("'", " ").split()
    return any(PurePosixPath(word).name in ("claude", "codex") for word in words)


def _split_redirections(command: str) -> tuple[list[str], tuple[str, ...]] | None:
    """The words before redirections at the end; None if the shell would do more than split."""
    lexer = shlex.shlex(command, posix=False, punctuation_chars=False)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        raw = list(lexer)
        words = [shlex.split(word, comments=False) for word in raw]
    except ValueError:
        return None
    cut = next((i for i, word in enumerate(raw) if word.startswith(_REDIRECTION)), len(raw))
    if any(_is_expanded(word) for word in raw[:cut]) or any(
        _is_expanded(word.lstrip("12&>")) for word in raw[cut:]
    ):
        return None
    return [part for word in words[:cut] for part in word], tuple(raw[cut:])


def _is_expanded(word: str) -> bool:
    if word[:1] == "'" and word[-1:] == "'":
        return False
    if word[:1] == '"' and word[-1:] == '"':
        return bool(set(word) & set("$`\\"))
    return bool(set(word) & (_SHELL_SYNTAX | {"\\"}))


def _read(
    tool: _Tool, words: list[str], redirections: tuple[str, ...], stdin: str | None
) -> ModelCommand | None:
    prompts: list[str] = []
    kept: list[str] = []
    model = ""
    rest = iter(words)
    for word in rest:
        if word in ("-m", "--model"):
            model = next(rest, "")
        elif word in tool.own_with_value:
            next(rest, "")
        elif word in tool.with_value:
            kept += [word, next(rest, "")]
        elif word.startswith("-") and word != "-":
            kept += [] if word in tool.own else [word]
        elif word != "-":
            prompts.append(word)
    prompts += [stdin] if stdin else []
    # Drover would run commands in the instructions that are written !`command`.
    if len(prompts) != 1 or not prompts[0].strip() or "!`" in prompts[0]:
        return None
    return ModelCommand(tool.harness, prompts[0], model, tuple(kept), redirections)
