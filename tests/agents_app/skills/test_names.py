import pytest

from agents_app.names import agent_name_problem, canonical


@pytest.mark.parametrize("name", ["dev", "1a", "a", "0", "a-b-c", "a" * 64])
def test_a_plain_name_is_accepted(name):
    assert agent_name_problem(name) is None


@pytest.mark.parametrize(
    "name",
    ["", "Dev", "-a", "a-", "a--b", "a_b", "x y", "é", "dev\n", "../x", "-Q", "a/b", "a.b", "\0"],
)
def test_any_other_name_is_refused(name):
    assert "is not a valid agent name" in str(agent_name_problem(name))


def test_a_digit_of_another_script_is_no_digit_here():
    assert agent_name_problem("agent\uff11")


def test_the_reserved_name_is_refused():
    assert agent_name_problem("default") == (
        "the agent name 'default' is reserved; rename the directory"
    )


def test_a_long_name_is_refused_by_its_length():
    assert "65 characters; at most 64" in str(agent_name_problem("a" * 65))


@pytest.mark.parametrize("spelling", ["max_reruns", "maxReruns", "max-reruns"])
def test_all_spellings_of_a_field_are_one(spelling):
    assert canonical(spelling) == "max_reruns"


def test_the_other_names_of_two_fields_are_known():
    assert canonical("maxWorkQueueSize") == "work_queue_size"
    assert canonical("cron") == "expression"
