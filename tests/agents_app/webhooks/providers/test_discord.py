"""Interactions of Discord, reduced to the fields that Drover reads."""

from agents_app.webhooks.providers import PROVIDERS, match_filters
from tests.agents_app.webhooks.providers.signing import NOW, body_of

DISCORD = PROVIDERS["discord"]
COMMAND = {
    "id": "846462639134605312",
    "type": 2,
    "guild_id": "G1",
    "channel_id": "C1",
    "member": {"user": {"username": "ann"}},
    "data": {
        "name": "deploy",
        "options": [{"name": "to", "value": "live"}, {"name": "force", "value": True}, {}],
    },
}


def test_a_command_has_its_options_in_the_body():
    context = DISCORD.parse({}, COMMAND, NOW)
    assert (context.event, context.action, context.sender) == (
        "application_command",
        "deploy",
        "ann",
    )
    assert (context.repo, context.branch) == ("G1", "C1")
    assert context.body == "to: live\nforce: True"


def test_a_pressed_button_does_not_match_a_filter_on_commands():
    pressed = {**COMMAND, "type": 3, "data": {"custom_id": "yes", "component_type": 2}}
    context = DISCORD.parse({}, pressed, NOW)
    assert (context.event, context.action, context.title) == ("message_component", "yes", "yes")
    assert not match_filters(DISCORD.filters, {"commands": ["yes"]}, context).matched


def test_a_ping_is_answered_and_ignored():
    assert DISCORD.answer({"type": 1}) == {"type": 1}
    assert DISCORD.parse({}, {"type": 1}, NOW) is None


def test_other_payloads_are_not_answered_as_a_challenge():
    assert [DISCORD.answer(p) for p in (COMMAND, {"type": True}, {"type": "1"}, None)] == [None] * 4


def test_the_delivery_id_is_the_id_of_the_interaction():
    assert DISCORD.delivery_id({}, body_of(COMMAND)) == "846462639134605312"
