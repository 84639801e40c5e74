"""Keys as apps declare them: names with parts, ranges, and what somebody is told who sets something impossible. Pure."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_site.foundation.gdpconfig.keys import BadConfig, Key, Keys


def key(name: str = "NQUEUED_SAT_CAP", **more: Any) -> Key:
    given: dict[str, Any] = {"component": "jobbroker", "type": "int", "default": 300, "doc": "Files queued on a link.", **more}
    return Key(name=name, **given)


def keys(*declared: Key) -> Keys:
    known = Keys()
    known.declare(*declared)
    return known


LIMIT = key("NQUEUELIMIT_<queue>", component="prod_job_throttler", default=None, low=0)
LIMIT_BY_TYPE = key("NQUEUELIMIT_<queue>_<RT>", component="prod_job_throttler", default=None, low=0)
PERIOD = key("PERIOD_<agent>", component="agents", type="duration", default="10s", low="50ms", high="1d")
PERIOD_REAP = key("PERIOD_reap", component="agents", type="duration", default="15s", low="1s")


def refused(call: Any, *args: Any, **named: Any) -> list[tuple[str, str]]:
    with pytest.raises(BadConfig) as caught:
        call(*args, **named)
    assert all(problem.message for problem in caught.value.problems)
    return [(problem.field, problem.rule) for problem in caught.value.problems]


def test_defaults_and_bounds_may_be_written_as_texts() -> None:
    assert (PERIOD.default, PERIOD.low, PERIOD.high) == (10.0, 0.05, 86_400.0)
    assert PERIOD.bounds == "from 50ms to 1d"


@pytest.mark.parametrize(
    "wrong",
    [
        {"default": -1, "low": 0},
        {"default": "many"},
        {"default": True},
        {"doc": " "},
        {"name": "NO BLANKS"},
        {"name": "TWICE_<a>_<a>"},
        {"name": "RESERVED_<vo>"},
        {"type": "enum", "default": "a"},
        {"choices": ("1", "2")},
        {"type": "bool", "default": True, "low": 0},
    ],
)
def test_a_key_that_contradicts_itself_is_refused_where_it_is_declared(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"NQUEUED|NO BLANKS|TWICE|RESERVED"):
        key(**wrong)


def test_a_name_is_declared_once() -> None:
    with pytest.raises(ValueError, match="twice"):
        keys(key(), key())


def test_the_same_name_may_be_a_key_of_another_component_or_app() -> None:
    known = keys(key(), key(component="anal_jobbroker"), key(app="pandaserver"))
    assert known.get("jobbroker", "NQUEUED_SAT_CAP", app="pandaserver").app == "pandaserver"


def test_a_value_below_or_above_its_range_is_refused_with_the_range() -> None:
    capped = key(low=0, high=1000)
    with pytest.raises(BadConfig, match=r"NQUEUED_SAT_CAP: 1001 is out of range: from 0 to 1000"):
        capped.read("1001")
    assert refused(capped.read, "-1") == [("value", "range")]
    assert (capped.read("0"), capped.read("1000")) == (0, 1000)


def test_an_enum_names_its_choices_and_the_nearest_one() -> None:
    model = key("SHARE_MODEL", type="enum", default="global", choices=("global", "work_queue"))
    with pytest.raises(BadConfig, match=r"'workqueue' is not one of global, work_queue; did you mean work_queue\?"):
        model.read("workqueue")


def test_a_list_may_be_limited_in_words_and_length() -> None:
    states = key("STATES", type="list", default=["sent"], choices=("sent", "running"), high=2)
    assert states.read("running, sent") == ("running", "sent")
    assert refused(states.read, "sent, gone") == [("value", "choice")]
    assert refused(states.read, "sent, sent, sent") == [("value", "range")]


def test_a_key_may_have_a_rule_of_its_own() -> None:
    even = key(check=lambda value: None if value % 2 == 0 else "must be even")
    with pytest.raises(BadConfig, match="NQUEUED_SAT_CAP: must be even"):
        even.read("3")
    object_of_lists = key(
        "GROUPS", type="json", default={"a": []}, check=lambda value: None if value == {"a": []} else "must be as it is"
    )
    assert refused(object_of_lists.read, '{"a": [1]}') == [("value", "rule")]


def test_only_a_key_without_default_can_be_set_to_unset() -> None:
    assert LIMIT.read("unset") is None
    assert LIMIT.write(None) == "unset"
    assert refused(key().read, "unset") == [("value", "type")]


def test_parts_are_filled_in_with_their_blanks() -> None:
    assert LIMIT.fill(queue="MC 16") == "NQUEUELIMIT_MC 16"
    assert LIMIT_BY_TYPE.fill(queue="MC 16", RT="MCORE") == "NQUEUELIMIT_MC 16_MCORE"


@pytest.mark.parametrize(
    "parts", [{}, {"share": "x"}, {"queue": "x", "RT": "y"}, {"queue": ""}, {"queue": " x"}, {"queue": "a\nb"}]
)
def test_parts_that_are_missing_unknown_or_unusable_are_refused(parts: dict[str, str]) -> None:
    assert refused(LIMIT.fill, **parts)


def test_a_stored_name_belongs_to_the_plain_key_or_to_all_patterns_that_fit() -> None:
    known = keys(LIMIT, LIMIT_BY_TYPE, PERIOD, PERIOD_REAP)
    assert known.matching("agents", "PERIOD_reap") == (PERIOD_REAP,)
    assert known.matching("agents", "PERIOD_feed") == (PERIOD,)
    assert known.matching("prod_job_throttler", "NQUEUELIMIT_A_B") == (LIMIT_BY_TYPE, LIMIT)
    assert known.reading("agents", "PERIOD_<agent>", agent="reap") == (PERIOD_REAP, "PERIOD_reap")
    assert known.reading("agents", "PERIOD_<agent>", agent="feed") == (PERIOD, "PERIOD_feed")


def test_an_unknown_key_is_answered_with_the_nearest_known_one() -> None:
    known = keys(key(), key("TW_DONE_JOB_STAT", component="anal_jobbroker"), LIMIT)
    with pytest.raises(
        BadConfig, match=r"unknown configuration key jobbroker.NQUEUED_SAT_CAPP of app jedi; did you mean NQUEUED_SAT_CAP\?"
    ):
        known.get("jobbroker", "NQUEUED_SAT_CAPP")
    with pytest.raises(BadConfig, match=r"it is a key of anal_jobbroker.TW_DONE_JOB_STAT"):
        known.matching("jobbroker", "TW_DONE_JOB_STAT")
    with pytest.raises(BadConfig, match=r"it is a key of prod_job_throttler.NQUEUELIMIT_<queue>"):
        known.matching("jobbroker", "NQUEUELIMIT_MC 16")
    with pytest.raises(BadConfig, match=r"fill in <queue>"):
        known.matching("prod_job_throttler", "NQUEUELIMIT_<queue>")


def test_everything_wrong_with_an_override_is_said_at_once() -> None:
    known = keys(key(low=0))
    assert refused(known.check, "jobbroker", "NQUEUED_SAT_CAP", "-5", vo="no blanks") == [("vo", "vo"), ("value", "range")]
    assert refused(known.check, "jobbroker", " X" * 100, "5") == [("key", "name"), ("key", "unknown_key")]


def test_an_override_that_fits_two_patterns_must_suit_both() -> None:
    known = keys(LIMIT, key("NQUEUELIMIT_<queue>_<RT>", component="prod_job_throttler", default=None, high=10))
    assert known.check("prod_job_throttler", "NQUEUELIMIT_A", 50) == "50"
    assert refused(known.check, "prod_job_throttler", "NQUEUELIMIT_A_MCORE", 50) == [("value", "range")]


def test_values_are_stored_in_one_form() -> None:
    known = keys(PERIOD, key("CAP", type="size", default="1GB"), key("SHARES", type="list", default=[]))
    assert known.check("agents", "PERIOD_feed", "120s") == known.check("agents", "PERIOD_feed", 120) == "2min"
    assert known.check("jobbroker", "CAP", "1500MB") == "1500MB"
    assert known.check("jobbroker", "SHARES", "a ,b") == "a, b"


DECLARED = keys(
    key(low=0, high=10**6),
    key("RATIO", type="float", default=2.0, low=0),
    key("NW_ACTIVE", type="bool", default=True),
    key("MODEL", type="enum", default="a", choices=("a", "b")),
    key("GROUP", type="str", default="", high=20),
    key("SPACE", type="size", default=None, low="1kB"),
    key("GROUPS", type="json", default={}),
    key("LABELS", type="list", default=["managed"], low=1),
    LIMIT,
    LIMIT_BY_TYPE,
    PERIOD,
    PERIOD_REAP,
)
NAMES = (
    st.sampled_from([declared.name for declared in DECLARED])
    | st.text(max_size=20)
    | st.text(max_size=12).map("NQUEUELIMIT_".__add__)
)
EDITS = (
    st.text(max_size=20)
    | st.integers()
    | st.floats()
    | st.booleans()
    | st.none()
    | st.sampled_from(["1h", "5GB", "unset", "a", "true", "[]"])
)


@pytest.mark.parametrize("nothing", [None, "null"])
def test_a_key_that_has_a_default_takes_no_null(nothing: object) -> None:
    with pytest.raises(BadConfig, match="GROUPS: null is no value of this key"):
        DECLARED.check("jobbroker", "GROUPS", nothing)


@pytest.mark.parametrize("large", [{f"k{n}": "x" * 40 for n in range(2000)}, {"k": ["x" * 60_000] * 2}, ["x" * 40_000] * 2])
def test_a_value_whose_text_could_not_be_read_again_is_refused(large: Any) -> None:
    """It would be an override that is not used."""
    name = "LABELS" if isinstance(large, list) else "GROUPS"
    assert refused(DECLARED.check, "jobbroker", name, large) == [("value", "type")]


@given(st.sampled_from(["jobbroker", "agents", "prod_job_throttler", "other"]), NAMES, EDITS, st.text(max_size=5))
def test_any_edit_is_stored_so_that_it_can_be_read_or_refused_with_a_message(
    component: str, name: str, value: object, vo: str
) -> None:
    try:
        text = DECLARED.check(component, name, value, vo=vo)
    except BadConfig as bad:
        assert all(problem.field in ("key", "vo", "value") and problem.message for problem in bad.problems)
        return
    for fitting in DECLARED.matching(component, name):
        assert fitting.write(fitting.read(text)) == text
