"""A source with one agent in each format: its name, its files, and what a user names."""

import json

GENIE = [{"name": "a", "cron_expression": "0 9 * * *", "command": "true"}]
ARBITER = {"schedules": [{"schedule_phrase": "every day at 09:00", "message": "m"}]}
WORKFLOW = "on: {schedule: [{cron: '0 8 * * *'}]}\njobs: {}\n"
TIMER = {
    "a.timer": "[Timer]\nOnCalendar=daily\n",
    "a.service": "[Service]\nExecStart=/bin/true\n",
}
SCRIPT = "#!/bin/sh\nwhile true; do\n  claude -p 'Triage'\n  sleep 1h\ndone\n"
HERD = {"herdctl.yaml": "agents: [{path: a.yaml}]\n", "a.yaml": "name: a\nmodel: opus\n"}
LLAMA = {
    "config.toml": '[models.opus]\nprovider = "anthropic"\nmodel = "opus"\n',
    "agents/a/SKILL.md": "Triage.\n",
    "agents/a/config.toml": 'models = ["opus"]\nschedule = "0 9 * * *"\n',
    ".github/workflows/ci.yml": WORKFLOW,
}
CASES = [
    ("herdctl", HERD, "."),
    ("herdctl", HERD, "herdctl.yaml"),
    ("action-llama", LLAMA, "."),
    ("genie", {"x.json": json.dumps(GENIE)}, "x.json"),
    ("arbiter", {"x.json": json.dumps(ARBITER)}, "x.json"),
    ("systemd", TIMER, "."),
    ("systemd", TIMER, "a.timer"),
    ("github-actions", {".github/workflows/a.yml": WORKFLOW, "b.yml": "x: 1\n"}, "."),
    ("github-actions", {".github/workflows/a.yml": WORKFLOW}, ".github/workflows"),
    ("github-actions", {"a.yaml": WORKFLOW}, "a.yaml"),
    ("shell-script", {"a.sh": SCRIPT}, "a.sh"),
    ("crontab", {"a": "0 9 * * * true\n"}, "a"),
    ("system-crontab", {"a": "0 9 * * * root true\n"}, "a"),
]
