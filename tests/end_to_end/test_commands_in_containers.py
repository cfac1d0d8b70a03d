"""The commands of agents in real containers without a network, with curl and with python3 alone."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agents_app.runners.containers.options import AGENT_UID
from tests.faults.real_fleet import RealFleet
from tests.parts.stack_part import PrivateStack, Row
from tests.parts.waiting import wait_for

if TYPE_CHECKING:
    from tests.parts.docker_part import DockerEngine

pytestmark = pytest.mark.slow

CLIENTS = ("curl", "python3")
URI = 'deploy://one/the thing?$(touch pwned)&""'
# All characters of a text, special characters of shells and forms, and line ends at the end.
NASTY = "".join(map(chr, range(1, 128))) + " é 漢字 🐂 \u202e \"'$(id)`id` %41+&text=x \\n --\n\n"
SENT = "a message\twith 'quotes' \"and\" 🐂"

# Each line of the output has the name, exit code and answer of a command.
ASKER = f"""#!/bin/sh
did() {{ answer=$(drover "$@"); printf '%s %s %s\\n' "$1" $? "$answer"; }}
cd "$DROVER_AGENT_DIR"
echo "uid $(id -u)"
echo "net $(ls /sys/class/net)"
echo "clients $(command -v curl) $(command -v python3)"
did status < nasty
did progress 40 halfway
did lock '{URI}' --wait 30
did call helper < nasty
id=${{answer#*'"callId": '}}
did wait "${{id%%[!0-9]*}}" --timeout 40
did unlock '{URI}'
did unlock '{URI}'
did inbox --timeout 40
did return < nasty
"""
HELPER = """#!/bin/sh
drover return "$(id -u) for $(wc -c <"$DROVER_PROMPT_FILE")" >/dev/null
"""


@dataclass(frozen=True)
class ContainerOutput:
    """The output of a run in a container, and its row."""

    client: str
    run: Row
    lines: list[tuple[str, str]]

    def fact(self, name: str) -> str:
        (value,) = [rest for word, rest in self.lines if word == name]
        return value

    def answers(self, command: str) -> list[tuple[int, Any]]:
        """Exit code and JSON of each call of the command."""
        parted = [rest.partition(" ") for word, rest in self.lines if word == command]
        return [(int(code), json.loads(answer)) for code, _, answer in parted]


@pytest.fixture(scope="module")
def fleet(
    tmp_path_factory: pytest.TempPathFactory,
    migrated_database: Callable[[Path], str],
    docker_engine: "DockerEngine",
) -> Iterator[RealFleet]:
    directory = tmp_path_factory.mktemp("inside")
    url = migrated_database(directory / "data")
    stack = PrivateStack(directory, url, DOCKER_HOST=docker_engine.url)
    for client in CLIENTS:
        docker_engine.import_image(f"drover/{client}:1", client)
        write(stack, f"with-{client}", client, ASKER)
    write(stack, "helper", "curl", HELPER)
    fleet = RealFleet(stack)
    fleet.sync()
    fleet.ensure("redis", "gateway", "worker-1")
    yield fleet
    fleet.close()


def write(stack: PrivateStack, agent: str, client: str, script: str) -> None:
    runtime = json.dumps({"type": "container", "image": f"drover/{client}:1", "memory": "64m"})
    skill = f'---\ndescription: x\ncommand: ["./run.sh"]\nruntime: {runtime}\ntimeout: 100s\n---\n'
    directory = stack.write_agent(agent, skill, nasty=NASTY)
    (directory / "run.sh").write_text(script)
    (directory / "run.sh").chmod(0o755)


@pytest.fixture(scope="module")
def all_outputs(fleet: RealFleet) -> dict[str, ContainerOutput]:
    """Run both agents in parallel, so that they request the same lock."""
    agents = [f"with-{client}" for client in CLIENTS]
    for agent in agents:
        fleet.enqueue(agent)
    for agent in agents:
        wait_for(lambda agent=agent: fleet.states(agent) == ["running"], 20, fleet.facts(agent))
        fleet.call("send_message", agent, SENT)
    return {client: output_of(fleet, client) for client in CLIENTS}


@pytest.fixture(params=CLIENTS)
def output(
    request: pytest.FixtureRequest, all_outputs: dict[str, ContainerOutput]
) -> ContainerOutput:
    return all_outputs[request.param]


def output_of(fleet: RealFleet, client: str) -> ContainerOutput:
    (run,) = fleet.wait_for_states(f"with-{client}", "succeeded", seconds=60)
    sql = "SELECT data FROM drover_run_output WHERE run_id = ? ORDER BY seq"
    data = [bytes(row["data"]) for row in fleet.stack.rows(sql, run["id"])]
    parted = [line.partition(" ") for line in b"".join(data).decode().splitlines()]
    return ContainerOutput(client, run, [(word, rest) for word, _, rest in parted])


def test_a_run_in_a_container_has_no_privileges_no_network_and_one_client(
    output: ContainerOutput,
) -> None:
    """The precondition of the other tests in this file."""
    assert output.fact("uid") == str(AGENT_UID)
    assert output.fact("net") == "lo"
    assert [Path(path).name for path in output.fact("clients").split()] == [output.client]


def test_status_progress_and_return_arrive_with_every_character(output: ContainerOutput) -> None:
    for command in ("status", "progress", "return"):
        assert output.answers(command) == [(0, {"ok": True})]
    assert output.run["return_value"] == NASTY
    assert (output.run["status_text"], output.run["progress_percent"]) == ("halfway", 40)


def test_a_called_agent_receives_the_text_and_its_answer_is_returned(
    output: ContainerOutput, fleet: RealFleet
) -> None:
    ((code, called),) = output.answers("call")
    assert (code, called["status"] in {"pending", "running"}) == (0, True)
    sql = (
        "SELECT w.prompt FROM drover_agent_call c JOIN drover_work_item w ON w.id = c.work_item_id"
    )
    (item,) = fleet.stack.rows(f"{sql} WHERE c.id = ?", called["callId"])
    assert item["prompt"] == NASTY
    ((code, waited),) = output.answers("wait")
    (answer,) = waited["calls"]
    assert (code, waited["done"], answer["status"]) == (0, True, "completed")
    assert answer["returnValue"].startswith(f"{AGENT_UID} for ")


def test_a_lock_is_taken_and_released_once(output: ContainerOutput) -> None:
    ((code, lock),) = output.answers("lock")
    assert (code, lock["ok"]) == (0, True)
    (given, _), (again, refused) = output.answers("unlock")
    assert given == 0
    # The other container may hold the lock by now.
    assert (again, refused["error"]["code"]) in {(2, "not_found"), (1, "locked")}


def test_two_containers_hold_the_lock_one_after_the_other(
    all_outputs: dict[str, ContainerOutput], fleet: RealFleet
) -> None:
    sql = "SELECT run_id, name FROM drover_run_event WHERE name LIKE 'run.%locked' ORDER BY id"
    lock_events = [(row["run_id"], row["name"]) for row in fleet.stack.rows(sql)]
    first, second = lock_events[0][0], lock_events[-1][0]
    held = [(run, name) for run in (first, second) for name in ("run.locked", "run.unlocked")]
    assert lock_events == held
    assert {first, second} == {output.run["id"] for output in all_outputs.values()}


def test_a_message_sent_during_the_run_is_in_the_inbox(output: ContainerOutput) -> None:
    ((code, inbox),) = output.answers("inbox")
    assert (code, [each["text"] for each in inbox["messages"]]) == (0, [SENT])
