"""Next fires per second, beside croniter and cronsim with the same zones; parsed phrases."""

import random
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count, islice, product
from zoneinfo import ZoneInfo

from croniter import croniter
from cronsim import CronSim

from agents_app.triggers import next_fire, parse_trigger, parse_when
from tests.benchmarks.bed import Bed, Numbers, medians
from tests.benchmarks.table import Row

EXPRESSIONS = (
    "* * * * *",
    "*/5 * * * *",
    "0 * * * *",
    "*/15 8-18 * * 1-5",
    "15 10,14,18 * * *",
    "30 2 * * *",
    "0 9 * * 1-5",
    "5 4 * * 0",
    "0 9 1-7 * 1",
    "0 9 * * 1#2",
    "0 0 1 * *",
    "0 0 L * *",
)
ZONES = tuple(
    map(
        ZoneInfo,
        (
            "UTC",
            "America/New_York",
            "America/Sao_Paulo",
            "Asia/Kolkata",
            "Australia/Lord_Howe",
            "Europe/Berlin",
        ),
    )
)
START = datetime(2026, 1, 1, tzinfo=UTC)
YEAR_SECONDS = 365 * 86400
PAIRS = tuple(product(EXPRESSIONS, ZONES))
STEPS = 60
# One for single questions, then up to six for a walk along monthly fires.
YEARS_A_ROUND = 7
PHRASES = 10_000
_FLAVOURS = {"walk": "from each fire to the next", "fresh": "an instant of its own each time"}
_UNIT = "/s"

Walk = Callable[[str, datetime], Iterator[object]]
Fresh = Callable[[str, datetime], object]


def measure(bed: Bed) -> list[Row]:
    check_that_all_agree()
    # Each counts its rounds: all get the same questions, and no round those of another one,
    # or Drover would just remember its answers.
    subjects: dict[str, Callable[[], Numbers]] = {
        "drover": partial(_fires, _drover_walk, _drover_fresh, count()),
        "croniter": partial(_fires, _croniter_walk, _croniter_fresh, count()),
        "cronsim": partial(_fires, CronSim, _cronsim_fresh, count()),
        "phrases": partial(_phrases, count()),
    }
    found = medians(bed.rounds, subjects)
    fires = [
        Row(
            what=f"next fire of cron, {text} (peer: {peer})",
            on=f"{len(ZONES)} zones",
            drover=found["drover"][flavour],
            peer=found[peer][flavour],
            unit=_UNIT,
            at_least_of_peer=1.0 if peer == "croniter" else None,
        )
        for peer in ("croniter", "cronsim")
        for flavour, text in _FLAVOURS.items()
    ]
    read = found["phrases"]["phrases"]
    return [*fires, Row(what=f"{PHRASES:,} phrases read", on="", drover=read, unit=_UNIT)]


def check_that_all_agree() -> None:
    """In January, when no zone here changes its clocks: the same question has one answer."""
    for expression, at in _questions(START, 20 * 86400, 5):
        answers = {
            "drover": _drover_fresh(expression, at),
            "croniter": _croniter_fresh(expression, at),
            "cronsim": _cronsim_fresh(expression, at),
        }
        assert len(set(answers.values())) == 1, f"{expression} after {at}: {answers}"


# --- Drover, croniter, cronsim --------------------------------------------------------------


def _drover_walk(expression: str, at: datetime) -> Iterator[object]:
    trigger, zone = parse_trigger(expression), _zone(at)
    fire: datetime | None = at
    while fire is not None:
        fire = next_fire(trigger, fire, zone)
        yield fire


def _drover_fresh(expression: str, at: datetime) -> object:
    return next_fire(parse_trigger(expression), at, _zone(at))


def _zone(at: datetime) -> ZoneInfo:
    assert isinstance(at.tzinfo, ZoneInfo)
    return at.tzinfo


def _croniter_walk(expression: str, at: datetime) -> Iterator[object]:
    found = croniter(expression, at)
    while True:
        yield found.get_next(datetime)


def _croniter_fresh(expression: str, at: datetime) -> object:
    return croniter(expression, at).get_next(datetime)


def _cronsim_fresh(expression: str, at: datetime) -> object:
    return next(CronSim(expression, at))


def _fires(walk: Walk, fresh: Fresh, rounds: Iterator[int]) -> Numbers:
    year = START.year + YEARS_A_ROUND * next(rounds)
    questions = _questions(START.replace(year=year), YEAR_SECONDS, STEPS)
    walks = _questions(START.replace(year=year + 1), YEAR_SECONDS, 1)
    return {
        "walk": _per_second(
            len(walks) * STEPS, lambda: [list(islice(walk(*each), STEPS)) for each in walks]
        ),
        "fresh": _per_second(len(questions), lambda: [fresh(*each) for each in questions]),
    }


def _questions(start: datetime, seconds: int, times: int) -> list[tuple[str, datetime]]:
    """Every expression in every zone, each time at another second."""
    chance = random.Random(start.year)
    moments = iter(chance.sample(range(seconds), len(PAIRS) * times))
    asked = [
        (expression, (start + timedelta(seconds=next(moments))).astimezone(zone))
        for expression, zone in PAIRS
        for _ in range(times)
    ]
    chance.shuffle(asked)
    return asked


# --- phrases --------------------------------------------------------------------------------


def _phrases(rounds: Iterator[int]) -> Numbers:
    day = next(rounds)
    chance = random.Random(day)
    texts = [_phrase(chance, number) for number in range(1, PHRASES + 1)]
    read = partial(parse_when, now=START + timedelta(days=day), zone=ZONES[1])
    return {"phrases": _per_second(PHRASES, lambda: [read(text) for text in texts])}


def _phrase(chance: random.Random, number: int) -> str:
    hour, minute = chance.randrange(24), chance.randrange(60)
    at = f"at {hour:02}:{minute:02}"
    return chance.choice(
        (
            f"every day {at}",
            f"every monday and friday {at}",
            f"every month on the {hour + 4}th at {hour % 12 + 1} pm",
            f"tomorrow {at} Europe/Berlin",
            f"next tuesday {at}",
            f"in {number} minutes",
            f"every {number} seconds",
            f"2027-06-{hour + 1:02}T{hour:02}:{minute:02}:00Z",
            f"{minute} {hour} * * 1-5",
            f"{number}m",
        )
    )


def _per_second(number: int, work: Callable[[], object]) -> float:
    """CPU time, so that other load of the machine does not affect only one subject."""
    began = time.process_time()
    work()
    return number / (time.process_time() - began)
