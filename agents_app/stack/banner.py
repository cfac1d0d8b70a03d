"""The message of `manage.py up` when all processes are ready."""

import os
import time

from agents_app.conf import PROGRAM, Conf, command_line
from agents_app.stack.roles import FLOWER_USER, flower_password_file

# Environment variable with the start time; `up` sets it before it becomes the supervisor.
STARTED_AT = "DROVER_UP_STARTED_AT"


def banner(conf: Conf) -> str:
    seconds = time.time() - float(os.environ.get(STARTED_AT) or time.time())
    password = f"user {FLOWER_USER}, password in {flower_password_file(conf.data)}"
    flower = f"  Flower     http://127.0.0.1:{conf.flower_port}/ ({password})\n"
    link = command_line("login_link")
    login = f"{link} prints a link, {PROGRAM} password sets the password"
    return (
        f"Drover is ready ({seconds:.1f} s)\n"
        f"  dashboard  http://127.0.0.1:{conf.port}/admin/ (user admin)\n"
        f"{flower if conf.flower else ''}"
        f"  login      {login}\n"
        f"  project    {conf.project}\n"
        "  stop       Ctrl-C lets running agents finish, twice ends them"
    )
