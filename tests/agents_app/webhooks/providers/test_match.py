"""Filters: lists, globs, negation, and the reason when a filter does not match."""

import pytest

from agents_app.webhooks.providers import (
    PROVIDERS,
    Context,
    FilterMatch,
    Miss,
    match_filters,
    unknown_filters,
)

GITHUB = PROVIDERS["github"].filters
PUSH = Context(source="github", event="push", repo="acme/app", branch="release/1.0", sender="ann")
ISSUE = Context(source="github", event="issues", action="opened", repo="acme/app", labels=("bug",))


def matched(filters, context=PUSH, provider="github"):
    return match_filters(PROVIDERS[provider].filters, filters, context).matched


@pytest.mark.parametrize("pattern", ["release/*", "release/?.?", "*", "release/1.0", "*/1*"])
def test_a_matching_glob_accepts_the_value(pattern):
    assert matched({"branches": [pattern]})


@pytest.mark.parametrize("pattern", ["release/", "Release/*", "release/?", "rel*se/2*", "[r]*"])
def test_a_glob_must_match_the_whole_value_with_its_case(pattern):
    assert not matched({"branches": [pattern]})


def test_brackets_in_a_filter_have_no_special_meaning():
    tagged = Context(source="github", event="issues", repo="a/b", labels=("[wip]",))
    assert matched({"labels": "[wip]"}, tagged)
    assert matched({"labels": "[w*"}, tagged)
    assert not matched({"labels": "[wip]*x"}, tagged)


def test_a_glob_with_many_stars_is_compared_quickly():
    long = Context(source="github", event="push", repo="a/b", branch="a" * 4000)
    assert not matched({"branches": "*a" * 30 + "b"}, long)


def test_a_negated_filter_refuses_the_values_it_names():
    assert not matched({"not_labels": ["wip", "bug"]}, ISSUE)
    assert matched({"not_labels": "wip"}, ISSUE)
    assert not matched({"not_branches": "release/*"})


def test_a_negated_filter_accepts_events_without_the_field():
    assert matched({"not_labels": "bug", "not_assignee": "bot"})


@pytest.mark.parametrize("provider", sorted(PROVIDERS))
def test_every_provider_has_the_filter_sender(provider):
    assert matched({"sender": "a*"}, provider=provider)
    assert not matched({"sender": "bob"}, provider=provider)
    assert not matched({"not_sender": ["bob", "ann"]}, provider=provider)


@pytest.mark.parametrize("nothing", [[], "", [""]])
def test_a_filter_without_a_value_matches_everything(nothing):
    assert matched({"events": nothing, "not_events": nothing})


def test_a_miss_has_the_filter_its_values_and_those_of_the_event():
    result = match_filters(GITHUB, {"events": ["issues"], "labels": "bug", "repos": "acme/*"}, PUSH)
    assert result == FilterMatch(
        (Miss("events", ("issues",), ("push",)), Miss("labels", ("bug",), ()))
    )
    assert result.reason == "events: wanted issues, got push; labels: wanted bug, got nothing"


def test_the_text_of_a_miss_is_limited_for_any_event():
    labels = tuple(f"{number}-" + "x" * 5000 for number in range(3000))
    context = Context(source="github", event="issues", repo="a/b", labels=labels)
    reason = match_filters(GITHUB, {"labels": "bug"}, context).reason
    assert reason.startswith("labels: wanted bug, got 0-xxx")
    assert "19-xxx" in reason
    assert len(reason) < 5000


def test_the_text_of_a_negated_miss_says_not():
    reason = match_filters(GITHUB, {"not_labels": "bug"}, ISSUE).reason
    assert reason == "not_labels: wanted not bug, got bug"


def test_two_names_of_one_filter_make_one_miss():
    reason = match_filters(GITHUB, {"org": "x", "orgs": ["y"]}, PUSH).reason
    assert reason == "org/orgs: wanted x or y, got acme"


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("not_label", "not_labels"),
        ("labls", "labels"),
        ("not_repository", "not_repos"),
        ("colour", None),
    ],
)
def test_an_unknown_filter_is_named_with_a_suggestion(name, suggestion):
    (unknown,) = unknown_filters(GITHUB, [name, "labels", "not_labels", "sender"])
    assert (unknown.field, unknown.suggestion) == (name, suggestion)
    assert name in str(unknown)
