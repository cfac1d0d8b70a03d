"""The arguments of the commands that also work with a remote Drover; schedules have their own."""

from argparse import ArgumentParser

EVERY_SECONDS = "2"


def add_common(parser: ArgumentParser, default_tenant: str) -> None:
    parser.add_argument("--json", action="store_true", help="Print JSON.")
    parser.add_argument("--tenant", default=default_tenant, help="The tenant (default: default).")


def add_wait(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--wait", action="store_true", help="Follow its output and exit with its exit code."
    )
    parser.add_argument(
        "--timeout",
        metavar="SPAN",
        default="",
        help="With --wait: stop waiting after 30, 10m or 1.5h and exit with 124; "
        "the work continues.",
    )


def add_stat(parser: ArgumentParser) -> None:
    parser.add_argument("agents", metavar="AGENT", nargs="*", help="Only these agents.")
    parser.add_argument(
        "-a", "--all", action="store_true", help="Also agents of earlier project directories."
    )
    parser.add_argument("-w", "--watch", action="store_true", help="Refresh until Ctrl-C.")
    often = f"Interval of --watch in seconds ({EVERY_SECONDS})."
    parser.add_argument("--every", metavar="SECONDS", default=EVERY_SECONDS, help=often)


def add_run(parser: ArgumentParser) -> None:
    parser.add_argument("agent", metavar="AGENT")
    parser.add_argument("--prompt", metavar="TEXT", default="", help="Prompt of the run.")
    add_wait(parser)


def add_rerun(parser: ArgumentParser) -> None:
    parser.add_argument("runs", metavar="RUN", nargs="+", help="Number of a run.")
    add_wait(parser)


def add_stop(parser: ArgumentParser) -> None:
    parser.add_argument("target", metavar="RUN|AGENT", nargs="?", default="")
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        default="",
        help="Wait at most this long, then exit with an error; a drain continues.",
    )
    parser.add_argument("--keep-queue", action="store_true", help="Keep queued work items.")


def add_logs(parser: ArgumentParser) -> None:
    parser.add_argument("targets", metavar="RUN|AGENT", nargs="*", default=[])
    parser.add_argument("--all", action="store_true", help="Of every agent.")
    parser.add_argument(
        *("-f", "--follow"),
        action="store_true",
        help="Go on: with a run until the run ends, with agents from run to run until Ctrl-C.",
    )
    parser.add_argument("--times", action="store_true", help="Put the time before each line.")
