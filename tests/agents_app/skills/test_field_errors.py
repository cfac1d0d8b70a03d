import pytest

from tests.agents_app.skills.reading import agent, problem, problems, skill


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("scale: '2'", "scale: must be a whole number, not '2'"),
        ("scale: true", "scale: must be a whole number, not true"),
        ("scale: -1", "scale: must be at least 0, not -1"),
        ("scale: 10001", "scale: must be at most 10000, not 10001"),
        ("description: 5", "description: must be text, not 5; put it in quotes"),
        ("timeout: 0", "timeout: must be more than 0 and at most 31622400 seconds (366 days)"),
        ("timeout: true", "timeout: must be seconds (900) or a duration with a unit (15m, 1.5h)"),
        ("command: run 'it", "command: unbalanced quotes: no closing quotation"),
        ("command: [sh, true]", "command: argument 2 must be text, not True; put it in quotes"),
        ("command: {a: 1}", 'command: must be a list (["./run.sh", "-v"]) or a text'),
        ("command: []", "command: is empty; leave the field out to use the project's"),
        ("command: ''", "command: is empty"),
        ("on_lost: fial", "on_lost: must be 'fail' or 'retry', not 'fial'"),
        ("retries: 101", "retries: must be at most 100, not 101"),
        ("work_queue_size: 0", "work_queue_size: must be at least 1, not 0"),
        ("timezone: Europe/Berlni", 'timezone: unknown time zone "Europe/Berlni"'),
        ("credentials: github", "credentials: must be a list, not 'github'"),
        ("credentials: ['-x']", "credentials.1: must be 'type' or 'type:instance', not '-x'"),
        ("runtime: fast", "runtime: must be a table, not 'fast'"),
        ("runtime: {type: docker}", "runtime.type: must be 'process', 'host-user' or 'container'"),
        ("runtime: {run_as: '-u root'}", "runtime.run_as: must be a unix user name"),
        ("runtime: {cpus: many}", "runtime.cpus: must be a number, not 'many'"),
        ("runtime: {pids_limit: 0}", "runtime.pids_limit: must be at least 1, not 0"),
        ("runtime: {network: host}", "runtime.network: must be none, bridge or the name of your"),
        ("runtime: {network: 'container:x'}", "runtime.network: must be none, bridge or the name"),
        ("runtime: {pull: always}", "runtime.pull: must be 'never' or 'missing', not 'always'"),
        ("runtime: {memroy: 4g}", "runtime.memroy: unknown field; did you mean 'memory'?"),
        ("env: [A]", "env: must be a table, not a list"),
        ("env: {A: [1]}", "env.A: must be a text or a number"),
        ("env: {1A: x}", "env.1A: is not a valid variable name"),
        (
            "env: {DROVER_RUN_ID: x}",
            "env.DROVER_RUN_ID: names that begin with DROVER_ are reserved",
        ),
        ("params: [1]", "params: must be a table, not a list"),
        ("params: {a: .nan}", "nan is not a finite number"),
        ("hooks: {before: x}", "hooks.before: unknown field"),
        ("hooks: {pre: [1]}", "hooks.pre.1: must be text, not 1; put it in quotes"),
        ("hooks: {after_run: x}", "hooks.after_run: must be a list, not 'x'"),
        ("hooks: {after_run: [5]}", "hooks.after_run.1: must be a table, not 5"),
        ("hooks: {after_run: [{command: x}]}", "hooks.after_run.1.type: is missing"),
        ("hooks: {on_error: [{type: shel}]}", "hooks.on_error.1.type: must be 'shell', 'webhook'"),
        (
            "hooks: {on_error: [{type: shell}]}",
            "hooks.on_error.1.command: is missing: a hook of type 'shell' needs it",
        ),
        (
            "hooks: {after_run: [{type: shell, command: x, comand: y}]}",
            "hooks.after_run.1.comand: unknown field; did you mean 'command'?",
        ),
        (
            "hooks: {after_run: [{type: notify, url: 'https://x.example/'}]}",
            "hooks.after_run.1.url: a hook of type 'notify' does not use it, but message",
        ),
        (
            "hooks: {after_run: [{type: webhook, url: 'ftp://x.example/'}]}",
            "hooks.after_run.1.url: is not an allowed URL: the URL must begin with http://",
        ),
        (
            "hooks: {after_run: [{type: webhook, url: 'https://x.example/${KEY}'}]}",
            "hooks.after_run.1.url: only a whole URL may be a reference: ${NAME}",
        ),
        (
            "hooks: {after_run: [{type: webhook, url: 'env:KEY'}]}",
            "hooks.after_run.1.url: must be a URL, or ${NAME} of a variable of a declared",
        ),
        (
            "hooks: {after_run: [{type: webhook, url: 'https://x.example/', headers: {Host: x}}]}",
            "hooks.after_run.1.headers.Host: this header is set by Drover; leave it out",
        ),
        (
            "hooks: {on_error: [{type: webhook, url: 'https://x.example/', headers: {A: '${B}'}}]}",
            "hooks.on_error.1.headers.A: B is not a variable of a credential of this agent: add",
        ),
        (
            "hooks: {after_run: [{type: webhook, url: 'https://x.example/', timeout: 61}]}",
            "hooks.after_run.1.timeout: must be at most 60 s for a request",
        ),
        (
            "hooks: {after_run: [{type: slack}]}",
            "hooks.after_run.1.channel_id: give either `channel_id` for a bot or `url`",
        ),
        (
            "hooks: {after_run: [{type: slack, channel_id: C1}]}",
            "hooks.after_run.1.bot_token_env: SLACK_BOT_TOKEN is not a variable of a credential",
        ),
        (
            "hooks: {after_run: [{type: notify, on_events: [done]}]}",
            "hooks.after_run.1.on_events.1: must be 'completed', 'failed', 'timeout' or",
        ),
        (
            "hooks: {after_run: [{type: notify, when: a..b}]}",
            "hooks.after_run.1.when: must be a path such as metadata.changed, not 'a..b'",
        ),
        ("metadata_file: ../x", "metadata_file: must be a path below the working directory, not"),
        ("webhooks: gh", "webhooks: must be a list, not 'gh'"),
        ("webhooks: [gh]", "webhooks.1: must be a table, not 'gh'"),
        ("webhooks: [{events: [x]}]", "webhooks.1.source: is missing"),
        ("webhooks: [{source: gh, labels: {a: 1}}]", "webhooks.1.labels: must be a text or a list"),
        ("shedule: 5m", "shedule: unknown field; did you mean 'schedule'?"),
        ("maxRerun: 5", "maxRerun: unknown field; did you mean 'max_reruns'?"),
        ("zzz: 5", "zzz: unknown field; the fields here are allowed_tools, budget,"),
        ("metadata: 5", "metadata: must be a table, not 5"),
        ('env: {A: "\\0"}', "a NUL character cannot be used in a value"),
    ],
)
def test_a_value_that_cannot_be_used_is_refused_with_its_line(written, reason):
    assert problem(agent, f"license: MIT\n{written}").startswith(f"SKILL.md:3: {reason}")


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("a: &x 1", "SKILL.md:2: the anchor &x is not allowed; leave it out"),
        ("a: *x", "SKILL.md:2: the alias *x is not allowed; repeat the value"),
        ("a: !!str 1", "SKILL.md:2: the tag !!str is not allowed; leave it out"),
        ("a: !ruby/object {}", "SKILL.md:2: the tag !ruby/object is not allowed; leave it out"),
        ("scale: 1\nenv:\n  A: 1\n  A: 2", "SKILL.md:5: duplicate key 'A'; first used on line 4"),
        ("[a]: 1", "SKILL.md:2: a key must be plain text"),
        (
            "schedule: */5 * * * *  # often",
            'SKILL.md:2:11: a value that begins with * must be quoted: write "*/5 * * * *"',
        ),
        (
            "schedules: {a: {cron: @daily}}",
            'SKILL.md:2:23: a value that begins with @ must be quoted: write "@daily"',
        ),
        ("\tscale: 1", "SKILL.md:2:1: a tab cannot indent YAML; use spaces"),
        (
            "description: Note: this",
            "SKILL.md:2:18: is not YAML: a value that contains ': ' must be quoted",
        ),
        ("a: 'x", "SKILL.md:2:4: is not YAML: this quote is not closed"),
        ("a: \x07", "SKILL.md:2: is not YAML: unacceptable character #x0007"),
        ("a: 1\n--- {b: 2}", "SKILL.md:3: a second YAML document starts here"),
        ("a: [1", "SKILL.md:3:1: is not YAML: while parsing a flow sequence"),
    ],
)
def test_yaml_that_is_not_allowed_is_refused_with_its_place(written, reason):
    found = problems(agent, written)
    assert found[0].startswith(reason), found


def test_all_errors_of_a_file_are_reported_at_once():
    found = problems(
        agent,
        "scale: x\nschedule: 61 * * * *\nruntime:\n  memory: 5\n  typ: process\nshedule: 5m",
        config="[[broken\n",
    )
    assert [line.split(" ")[0] for line in found] == [
        "SKILL.md:2:",
        "SKILL.md:3:",
        "SKILL.md:5:",
        "SKILL.md:6:",
        "SKILL.md:7:",
        "config.toml:1:9:",
    ]


def test_two_spellings_of_one_field_are_refused():
    assert problem(agent, "maxReruns: 1\nmax_reruns: 2").startswith(
        "SKILL.md:2: max_reruns: is giv"
    )


def test_the_line_is_counted_in_the_file_and_not_in_the_frontmatter():
    assert problem(skill, "\r\n\r\n---\r\nname: x\r\nscale: x\r\n---\r\n").startswith(
        "SKILL.md:5: "
    )


def test_a_secret_in_the_wrong_place_is_not_repeated():
    assert "hunter2" not in "".join(problems(agent, "env:\n  PASSWORD: [hunter2]"))
