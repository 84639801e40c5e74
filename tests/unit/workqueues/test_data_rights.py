"""Who may read a dataset of another VO: patterns, grants of a user and of an operator, roles, and what a name means."""

from __future__ import annotations

import pytest

from workqueues.rules.refine import DatasetKey, Reader, dataset_key
from workqueues.rules.refine.data_rights import Grant, matches, may_read, of_another_vo, pattern_fault

DATA = DatasetKey("atlas", "data26.run7.AOD")
READER = Reader("cms", "ada", frozenset())
FOR_CMS = Grant("atlas", "data26.*", "", "vo", "cms")


@pytest.mark.parametrize(
    ("pattern", "name", "fits"),
    [
        ("data26.AOD", "data26.AOD", True),
        ("data26.AOD", "data26.AODx", False),
        ("data26.*", "data26.", True),
        ("data26.*", "data26", False),
        ("*.AOD", "data26.AOD", True),
        ("*.AOD", "data26.AOD.old", False),
        ("*", "anything", True),
        ("data*.run7.*AOD", "data26.run7.AOD", True),
        ("a*a", "a", False),
        ("a*b*b", "ab", False),
        ("a*b*b", "abb", True),
        ("d?ta", "data", False),
        ("data_6", "data26", False),
        ("a" + "*a" * 100, "a" * 100_000 + "b", False),
    ],
)
def test_a_star_stands_for_any_text_and_nothing_else_for_another(pattern: str, name: str, fits: bool) -> None:
    assert matches(pattern, name) is fits


@pytest.mark.parametrize(
    ("grant", "reads"),
    [
        (FOR_CMS, True),
        (FOR_CMS._replace(grantee_kind="user", grantee="ada"), True),
        (FOR_CMS._replace(grantee_kind="user", grantee="bob"), False),
        (FOR_CMS._replace(grantee_kind="user"), False),
        (FOR_CMS._replace(grantee="ada"), False),
        (FOR_CMS._replace(grantee="lhcb"), False),
        (FOR_CMS._replace(vo="lhcb"), False),
        (FOR_CMS._replace(pattern="data25.*"), False),
        (FOR_CMS._replace(owner="eve"), True),
        (FOR_CMS._replace(owner="mallory"), False),
    ],
)
def test_a_grant_opens_what_it_names_to_whom_it_names(grant: Grant, reads: bool) -> None:
    """The dataset is eve's; who may grant only what is his own, opens no datasets of others."""
    assert may_read(READER, DATA, "eve", [grant]) is reads


def test_without_a_grant_a_role_in_the_vo_of_the_data_is_needed() -> None:
    assert not may_read(READER, DATA, "", [])
    assert may_read(Reader("cms", "ada", frozenset({"atlas"})), DATA, "", [])
    assert may_read(Reader("atlas", "ada", frozenset()), DATA, "", [])


def test_a_scope_may_be_the_vo_that_has_the_dataset() -> None:
    assert of_another_vo("cms", "atlas:data26") == DatasetKey("atlas", "data26")
    assert of_another_vo("cms", "atlas:mc:data26") == DatasetKey("atlas", "mc:data26")
    assert [of_another_vo("cms", name) for name in ("data26", "cms:data26", "atlas:")] == [None, None, None]
    assert dataset_key("cms", "atlas:mc:data26", "atlas") == DatasetKey("atlas", "mc:data26")
    assert dataset_key("cms", "mc:data26") == DatasetKey("cms", "mc:data26")


@pytest.mark.parametrize(
    ("pattern", "rule"),
    [
        ("data26.*", None),
        ("*", None),
        ("mc:a/b-c_d", None),
        ("", "format"),
        ("da?a", "format"),
        ("ä*", "format"),
        ("a" * 256, "length"),
    ],
)
def test_a_pattern_is_made_of_what_names_are_made_of(pattern: str, rule: str | None) -> None:
    assert (pattern_fault(pattern) or (None,))[0] == rule
