"""Hypothesis strategies for arbitrary rules."""

from dataclasses import replace

from hypothesis import strategies as st

from agents_app.rules.language.line_reader import MAX_NAME_LENGTH
from agents_app.rules.language.parse import auto_name
from agents_app.rules.language.rule import (
    Action,
    AliveCondition,
    At,
    BudgetCondition,
    Condition,
    Every,
    FailedCondition,
    IdleCondition,
    Pause,
    QueueCondition,
    Release,
    Resume,
    Rule,
    Scale,
    SendMessage,
    ShellCommand,
    Summon,
)

AGENT = st.sampled_from(["forge", "beacon", "drift", "a1", "all-day", "x-y-z", "any1"])
AGENTS = st.lists(AGENT, min_size=1, max_size=4, unique=True).map(tuple)
SECONDS = st.integers(1, 100 * 365 * 86_400)
COUNT = st.integers(0, 1_000_000)
# Characters of categories C are control characters and lone surrogates.
TEXT = st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=60).filter(
    lambda text: text.strip() and "{idle" not in text
)
NAME = st.text(
    st.characters(exclude_categories=("Cc", "Cs"), exclude_characters="[]"),
    min_size=1,
    max_size=MAX_NAME_LENGTH,
).filter(lambda text: text == text.strip() and text)
CRON = st.sampled_from(
    ["0 0 * * *", "*/30 * * * *", "0 9,17 * * 1-5", "1-10/3 * L jan 5#2", "0 1 * * 7"]
)
TRIGGER = st.builds(Every, SECONDS) | st.builds(At, CRON)
IDLE = st.builds(IdleCondition, st.sampled_from(["all", "any"]) | AGENTS, SECONDS)
OTHER = st.one_of(
    st.builds(AliveCondition, AGENTS, st.just(True)),
    st.builds(QueueCondition, AGENT, COUNT),
    st.builds(FailedCondition, AGENT, COUNT, SECONDS),
    st.builds(BudgetCondition, AGENT, COUNT),
)


@st.composite
def conditions(draw: st.DrawFn) -> tuple[Condition, ...]:
    found: list[Condition] = list(draw(st.lists(OTHER, max_size=2)))
    if draw(st.booleans()):
        found.append(draw(st.builds(AliveCondition, AGENTS)))
    if draw(st.booleans()):
        found.append(draw(IDLE))
    return tuple(draw(st.permutations(found)))


def actions(idle: bool) -> st.SearchStrategy[Action]:
    targets = st.just("all") | AGENTS
    message = TEXT
    if idle:
        targets |= st.just("{idle}")
        message |= st.just('"{idle}" \\ {idle_duration}')
    return st.one_of(
        st.builds(SendMessage, targets, message),
        st.builds(Summon, AGENT, st.none() | message),
        st.builds(Release, targets),
        st.builds(ShellCommand, TEXT),
        st.builds(Pause, targets),
        st.builds(Resume, targets),
        st.builds(Scale, AGENT, st.integers(0, 10_000)),
    )


@st.composite
def rules(draw: st.DrawFn) -> Rule:
    found = draw(conditions())
    idle = any(isinstance(one, IdleCondition) for one in found)
    rule = Rule(draw(NAME), draw(TRIGGER), found, draw(actions(idle)))
    if draw(st.booleans()):
        return replace(rule, name=auto_name(rule), auto_named=True)
    return rule
