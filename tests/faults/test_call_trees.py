"""Trees of calls on a real worker with a single thread: waiting runs block no other run."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.parts.stack_part import PrivateStack, Row
from tests.parts.waiting import wait_for

# A program that calls the gateway directly, without the commands of agents.
PROGRAM = """#!{python}
import json, os, sys, time, urllib.error, urllib.request
from concurrent.futures import ThreadPoolExecutor

def signal(name, **fields):
    request = urllib.request.Request(
        os.environ["DROVER_GATEWAY_URL"] + "/v1/signals/" + name,
        json.dumps(fields).encode(),
        {{
            "Authorization": "Bearer " + os.environ["DROVER_RUN_TOKEN"],
            "Content-Type": "application/json",
        }},
    )
    try:
        return json.load(urllib.request.urlopen(request, timeout=30))
    except urllib.error.HTTPError as error:
        if error.code != 429:
            raise
        time.sleep(int(error.headers["Retry-After"]))
        return signal(name, **fields)

def ask(*agents):
    with ThreadPoolExecutor(8) as several:
        call = lambda each: signal("call", agent=each[0], text=each[1])["callId"]
        calls = list(several.map(call, agents))
    while not (told := signal("wait", ids=calls))["done"]:
        pass
    return [each.get("returnValue", each.get("errorMessage")) for each in told["calls"]]

prompt = sys.stdin.read()
{body}
"""
FLEET = {
    "a": """
if "leaf" in prompt:
    signal("return", text="a as a leaf")
elif "loop" in prompt:
    signal("return", text="a(" + ask(("b", "loop"))[0] + ")")
elif "fan out to" in prompt:
    count = int(prompt.rpartition("fan out to ")[2].split()[0])
    ended = ask(*[("leaf", str(n)) for n in range(count)])
    done, refused = ended.count(""), sum("overflow" in text for text in ended)
    signal("return", text=f"{done} done, {refused} refused")
elif "many" in prompt:
    signal("return", text="+".join(ask(*[("c", str(n)) for n in range(6)])))
else:
    signal("return", text="a(" + ask(("b", "chain"))[0] + ")")
""",
    "b": """
if "loop" in prompt:
    signal("return", text="b(" + ask(("a", "leaf"))[0] + ")")
else:
    signal("return", text="b(" + ask(("c", "x"))[0] + ")")
""",
    "c": 'signal("return", text="c")',
}


@pytest.fixture(scope="module")
def stack(
    tmp_path_factory: pytest.TempPathFactory, migrated_database: Callable[[Path], str]
) -> Iterator[PrivateStack]:
    directory = tmp_path_factory.mktemp("trees")
    url = migrated_database(directory / "data")
    one = PrivateStack(directory, url, DROVER_CONCURRENCY="1", DROVER_RECONCILE_SECONDS="1")
    for name, body in FLEET.items():
        skill = '---\ndescription: x\ncommand: ["./agent.py"]\ntimeout: 10m\n---\n'
        path = one.write_agent(name, skill) / "agent.py"
        path.write_text(PROGRAM.format(python=sys.executable, body=body))
        path.chmod(0o755)
    one.write_agent("leaf", '---\ndescription: x\ncommand: ["true"]\n---\n')
    synced = one.manage("discover", "--sync")
    assert synced.returncode == 0, synced.stderr
    with one:
        for role in ("redis", "gateway", "worker-1"):
            one.start(role)
        yield one


def run(stack: PrivateStack, prompt: str, seconds: float = 40) -> str:
    """Run the tree of calls; returns its result."""
    stack.manage_json("run", "a", "--prompt", prompt)
    asked = "SELECT max(id) AS id FROM drover_work_item WHERE trigger = 'manual'"
    item = stack.rows(asked)[0]["id"]
    sql = "SELECT state, return_value, error FROM drover_run WHERE work_item_id = ?"

    def ended() -> list[Row]:
        return [row for row in stack.rows(sql, item) if row["state"] not in ("pending", "running")]

    (row,) = wait_for(ended, seconds, f"no end: {stack.log('worker-1')[-3000:]}")
    assert row["state"] == "succeeded", (row, stack.log("worker-1")[-3000:])
    return str(row["return_value"])


def test_three_agents_in_a_row_finish_on_one_thread(stack: PrivateStack):
    assert run(stack, "chain") == "a(b(c))"


@pytest.mark.fault("F47")
def test_a_loop_through_an_agent_of_scale_1_finishes_on_one_thread(stack: PrivateStack):
    assert run(stack, "loop") == "a(b(a as a leaf))"
    slots = stack.rows("SELECT count(*) AS n FROM drover_run WHERE slot IS NOT NULL")
    assert slots == [{"n": 0}]


def test_several_parallel_calls_are_all_answered(stack: PrivateStack):
    assert run(stack, "many") == "+".join("c" * 6)


@pytest.mark.timeout(300)
@pytest.mark.fault("F47")
def test_a_thousand_parallel_calls_are_answered_with_a_bounded_queue(
    stack: PrivateStack, on_postgres: bool
) -> None:
    """F47: through the gateway, by one run, to an agent of scale 1. The calls that fit into
    its queue are done; each of the other calls is answered with an error."""
    count = 130 if on_postgres else 1000
    done, refused = run(stack, f"fan out to {count}", 250).split(" done, ")
    assert int(done) + int(refused.split()[0]) == count
    assert 101 <= int(done) < count
    open_work = "SELECT count(*) AS n FROM drover_work_item WHERE state IN ('queued', 'admitted')"
    assert stack.rows(open_work) == [{"n": 0}]


def test_under_a_project_cap_of_1_a_call_tree_finishes(stack: PrivateStack):
    stack.rows("UPDATE drover_tenant SET scale = 1")
    try:
        assert run(stack, "loop") == "a(b(a as a leaf))"
        assert run(stack, "many") == "+".join("c" * 6)
    finally:
        stack.rows("UPDATE drover_tenant SET scale = NULL")
    found = stack.manage("doctor", "--invariants", "--json").stdout
    told = [each for each in json.loads(found)["findings"] if each["check"] == "invariants"]
    assert [each["verdict"] for each in told] == ["ok"], told
