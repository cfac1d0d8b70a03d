"""What the start of a process leaves out, and what it must not leave out."""

import subprocess
import sys

from tests.parts.stack_part import ROOT

LOADED = """
import django, gc, os, sys
os.environ["DJANGO_SETTINGS_MODULE"] = "scheduler_project.settings"
django.setup()
print(gc.isenabled(), gc.get_freeze_count() > 10_000, "rich" in sys.modules)
import rich.console
print(rich.console.Console.__name__)
"""


def test_a_loaded_process_collects_garbage_and_has_not_loaded_rich(tmp_path):
    env = {"DROVER_DATA": str(tmp_path)}
    argv = [sys.executable, "-c", LOADED]
    done = subprocess.run(argv, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.stdout == "True True False\nConsole\n", done.stderr
