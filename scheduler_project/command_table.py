"""The commands of `drover` in groups, each with one line; read without Django, so help is fast.

A command is listed when its file exists in agents_app/management/commands.
"""

from pathlib import Path

COMMANDS = Path(__file__).resolve().parent.parent / "agents_app" / "management" / "commands"

GROUPS: dict[str, dict[str, str]] = {
    "Start": {
        "init": "Create a project with a first agent",
        "agent": "Add agents to the project",
        "up": "Start Drover with the project of this directory",
        "down": "Stop Drover",
        "status": "Say whether Drover runs, and where",
        "service": "Install Drover as a systemd service, or remove it",
    },
    "Agents and runs": {
        "stat": "Show the scheduler, every agent and the workers",
        "run": "Run an agent now, or queue it",
        "logs": "Show the output of runs, also while they run",
        "stop": "Stop runs, or shut down the scheduler",
        "rerun": "Queue the input of earlier runs again",
        "queue": "List, drop, clear or restore queued work",
        "pause": "Pause agents or the scheduler",
        "resume": "Resume agents or the scheduler",
        "calls": "Show which agent called which",
        "locks": "List locks, or release one",
        "message": "Send a message to a running agent",
        "forget": "Delete an agent and its history",
    },
    "Triggers": {
        "schedule": "Create, list and change schedules",
        "why": "Explain why a schedule did not run",
        "webhook": "Test a webhook without sending one",
        "deliveries": "List, show and replay webhook deliveries",
        "rules": "List, test and silence rules",
    },
    "Project": {
        "discover": "Show the agents on disk and what is wrong with their files",
        "import": "Import crontabs, timers and projects of other systems",
        "credential": "Store, list and remove credentials",
    },
    "Access": {
        "login-link": "Print an address that logs in once",
        "password": "Set the password of a user",
        "token": "Create, list and revoke API tokens",
        "tenant": "Create, list and change tenants",
        "audit": "Export who changed what",
    },
    "Operation": {
        "doctor": "Check the installation and say what to do",
        "backup": "Back up the installation to a file",
        "restore": "Restore a backup",
        "upgrade-check": "Say whether this version can use the database",
        "move-to-postgres": "Copy everything from SQLite to PostgreSQL",
        "retention": "Delete old rows now",
        "completion": "Print a completion script for bash, zsh or fish",
        "manage": "Call a command of Django: migrate, shell, createsuperuser",
    },
}
# They also work with a remote Drover, through its API (agents_app.remote).
REMOTE = frozenset({"stat", "run", "logs", "schedule", "rerun", "stop", "why"})
# They read no project, so they work in any directory.
WITHOUT_PROJECT = frozenset({"init", "completion"})
# Commands that a running agent has (agents_app/agent_bin/drover), and this program has not.
OF_AGENTS = frozenset(
    {
        *("status", "progress", "return", "metadata", "exit", "shutdown", "usage", "inbox"),
        *("call", "check", "wait", "lock", "unlock", "lock-heartbeat"),
    }
)


def available() -> dict[str, dict[str, str]]:
    """The groups with the commands that this version has."""
    groups = {
        title: {name: text for name, text in commands.items() if is_command(name)}
        for title, commands in GROUPS.items()
    }
    return {title: commands for title, commands in groups.items() if commands}


def is_command(name: str) -> bool:
    return name == "manage" or module_of(name) in _modules()


def module_of(name: str) -> str:
    """The management command of a word: `login-link` is login_link.py."""
    return name.replace("-", "_")


def _modules() -> set[str]:
    return {path.stem for path in COMMANDS.glob("[a-z]*.py")}
