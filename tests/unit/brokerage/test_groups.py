"""The key GROUPS as matching reads it, and whose work a pilot does."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import pytest

import brokerage.config_keys  # noqa: F401 - declares the key
from broker_site.foundation.gdpconfig.keys import KEYS
from brokerage.rules.dispatch.groups import (
    UNNAMED,
    Credential,
    Served,
    group_faults,
    read_groups,
    served,
    sharing_groups,
    sharing_groups_of,
)

NONE: frozenset[str] = frozenset()
PRIVATE = Credential(private=True, owner="ada", owner_group="higgs")


def names(*said: str) -> frozenset[str]:
    return frozenset(said)


def test_groups_have_the_defaults_where_the_key_says_nothing() -> None:
    groups = read_groups({"higgs": {"share": 300, "properties": ["JOB_SHARING"]}, "top": {}})
    assert (groups["higgs"].share, groups["higgs"].background) == (300, False)
    assert groups["top"] == UNNAMED
    assert (UNNAMED.share, UNNAMED.properties) == (1000, ())
    assert sharing_groups(groups) == {"higgs"}


def test_groups_are_read_as_the_configuration_keeps_them() -> None:
    kept = MappingProxyType({"higgs": MappingProxyType({"properties": ("JOB_SHARING", "NormalUser"), "background": True})})
    assert read_groups(kept)["higgs"].background
    assert sharing_groups(read_groups(kept)) == {"higgs"}
    assert sharing_groups_of(kept) is sharing_groups_of(kept), "read once, though each ask needs it"
    sharing = MappingProxyType({"properties": ("JOB_SHARING",)})
    others: list[Any] = [MappingProxyType({str(n): sharing, "not": MappingProxyType({})}) for n in range(100)]
    assert [sharing_groups_of(other) for other in others] == [{str(n)} for n in range(100)]


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"higgs": {"shar": 1}}, "higgs.shar: unknown field of a group; the nearest known one is share"),
        ({"higgs": {"share": -1}}, "higgs.share: expected 0 to 1000000000000, found the number -1"),
        ({"higgs": {"share": "5"}}, "higgs.share: expected a number, found the text '5'"),
        ({"higgs": {"properties": "JOB_SHARING"}}, "higgs.properties: expected a list, found the text 'JOB_SHARING'"),
        ({"higgs": {"properties": [1]}}, "higgs.properties[0]: expected a text, found the number 1"),
        ({"higgs": {"background": 1}}, "higgs.background: expected true or false, found the number 1"),
        ({"higgs": 5}, "higgs: expected an object, found the number 5"),
    ],
)
def test_the_key_says_which_field_of_which_group_is_wrong(value: Any, told: str) -> None:
    assert group_faults(value) == told
    key = KEYS.get("dispatch", "GROUPS")
    assert key.check is not None
    assert key.check(value) == told


def test_the_key_is_an_object() -> None:
    assert "an object is expected" in str(group_faults(["higgs"]))
    assert group_faults({}) is None


def test_a_generic_pilot_does_whatever_it_asks_for() -> None:
    assert served(Credential(), NONE, NONE, NONE) == Served()
    assert served(Credential(), names("ada"), names("top", "higgs"), NONE) == Served(names("ada"), names("top", "higgs"))


def test_a_private_pilot_never_gets_more_than_its_credential_says() -> None:
    own = Served(names("ada"), names("higgs"))
    assert served(PRIVATE, NONE, NONE, NONE) == own
    assert served(PRIVATE, names("bob"), names("top"), NONE) == own
    assert served(PRIVATE, names("bob"), names("top"), names("top")) == own, "it is another group that shares"


def test_a_private_pilot_of_a_group_that_shares_its_jobs_does_them_for_every_owner() -> None:
    assert served(PRIVATE, NONE, names("top"), names("higgs")) == Served(NONE, names("higgs"))
    assert served(PRIVATE, names("bob"), NONE, names("higgs")) == Served(names("bob"), names("higgs"))


def test_a_private_pilot_without_group_does_its_owners_work_in_whatever_group() -> None:
    alone = Credential(private=True, owner="ada")
    assert served(alone, names("bob"), NONE, NONE) == Served(names("ada"), NONE)
    assert served(alone, NONE, names("top"), names("top")) == Served(names("ada"), names("top"))
