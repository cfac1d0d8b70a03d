"""The trace of a scheduled run lists the files that take part in it, and no others."""

import threading
from importlib import import_module
from pathlib import Path

import pytest

from tests.codebase.run_trace import trace
from tests.codebase.traced_run import Recorder


def test_the_recorder_lists_files_whose_functions_are_called_while_it_records(
    tmp_path, monkeypatch
):
    """Also on threads that are started then; not what an import calls, nor other packages."""
    called = "def work(): ...\n"
    files = {
        "agents_app/made_up/first.py": f"{called}\ndef load():\n    from . import imported\n",
        "agents_app/made_up/on_a_thread.py": called,
        "agents_app/made_up/imported.py": f"from . import decorators\n{called}work()\n"
        "class C:\n    decorators.work()\n",
        "agents_app/made_up/decorators.py": called,
        "agents_app/made_up/before.py": called,
        "other/aside.py": called,
    }
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path / "agents_app"))
    monkeypatch.syspath_prepend(str(tmp_path))
    first, threaded, before = (
        import_module(f"made_up.{name}") for name in ("first", "on_a_thread", "before")
    )
    aside = import_module("other.aside")
    before.work()
    recorder = Recorder(tmp_path)
    with recorder:
        first.work()
        first.load()
        aside.work()
        thread = threading.Thread(target=threaded.work)
        thread.start()
        thread.join()
    before.work()
    assert recorder.files == [
        "agents_app/made_up/first.py",
        "agents_app/made_up/on_a_thread.py",
    ]


@pytest.mark.slow
def test_a_scheduled_run_of_this_checkout_is_traced_from_beat_to_the_process(
    on_postgres, migrated_database, tmp_path
):
    """Guard: the trace follows the run through the thread that commits and the message."""
    url = "" if on_postgres else migrated_database(tmp_path)
    files = trace(Path(__file__).parents[2], Path(url.removeprefix("sqlite:///")) if url else None)
    assert files[0] == "scheduler_project/beat.py"
    way = ["due.py", "firings.py", "lifecycle.py", "tasks.py", "execute.py", "process.py"]
    names = [Path(file).name for file in files]
    assert [name for name in names if name in way] == way
    aside = ("agents_app/admin/", "agents_app/cli/", "agents_app/management/", "agents_app/rules/")
    assert [file for file in files if file.startswith(aside)] == []
    assert len(files) == len(set(files))
