"""Names of agents from commands: the program that matters, as a valid name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents_app.formats.agent_names import name_of_command, slug
from agents_app.names import agent_name_problem


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("/usr/local/bin/backup.sh --all", "backup"),
        ("cd /srv/app && php artisan schedule:run >> /dev/null 2>&1", "php-artisan"),
        ("nice -n 19 ionice -c3 /opt/Report_Daily.py", "report-daily"),
        ("flock -n /tmp/lock sudo -u www-data python3 /srv/job.py", "python3-job"),
        ("timeout -k 5 10m curl -s https://example.com/ping", "curl-ping"),
        ("FOO=bar BAZ=1 ./run.sh", "run"),
        ("[ -x /usr/bin/a ] && /usr/bin/b", "b"),
        ("test -f /x || { cd / && run-parts /etc/cron.daily; }", "run-parts-cron-daily"),
        ("find /tmp -mtime +7 -delete", "find"),
        ("default", "default-job"),
        ("echo 'unclosed", "echo"),
        ("", "job"),
        ("ünïcode", "n-code"),
        ("$(date)", "date"),
    ],
)
def test_the_name_is_that_of_the_program(command, name):
    assert name_of_command(command) == name


@given(st.text(max_size=80))
def test_every_text_has_a_valid_name(text):
    assert agent_name_problem(slug(text)) is None
    assert agent_name_problem(name_of_command(text)) is None
