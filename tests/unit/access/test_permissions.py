"""Permissions: who has which, in which VO; written out here a second time so that a change of the table is a choice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_site.foundation.access.permissions import PERMISSIONS, may, visible_vos
from broker_site.foundation.access.principal import ANONYMOUS, SYSTEM, JobClaim, Principal
from broker_site.foundation.access.roles import ROLES
from broker_site.foundation.kernel.registry import UnknownName

SUPERUSER = Principal("user", "root", superuser=True, roles={"atlas": frozenset(ROLES)})
PILOT = Principal("pilot", "pilot 1", queues=("ALPHA",))
ATLAS_PILOT = Principal("pilot", "pilot 2", queues=("ALPHA",), vo="atlas")
ENROLMENT = Principal("enrolment", "enrolment of ALPHA", queues=("ALPHA",))
CHILD = Principal("child", "child broker 1")
JOB = Principal("job", "job 7", job=JobClaim(7, 1, 0))


def user(**roles: str) -> Principal:
    return Principal("user", "alice", roles={vo: frozenset(held.split()) for vo, held in roles.items()})


@pytest.mark.parametrize("permission", PERMISSIONS)
def test_strangers_and_users_without_role_have_nothing(permission: str) -> None:
    for nobody in (ANONYMOUS, SYSTEM, user(), user(atlas="")):
        assert not may(nobody, permission)
        assert not may(nobody, permission, "atlas", nobody.name)
        assert "atlas" not in visible_vos(nobody, permission)


READS = {p for p in PERMISSIONS if ":read" in p} | {"token:own", "view:save"}
OPERATES = {
    *("task:command", "task:pause", "task:avalanche", "dataset:grant", "job:rebroker", "task:look", "queue:look", "share:look"),
    "task:transcend",
    *("transfer:retry", "transfer:cancel", "link:edit", "tree:edit", "dataset:close", "dataset:recover"),
    *("task:priority", "task:share", "task:release", "task:split", "task:attributes", "task:reassign", "task:tries"),
    *("job:kill", "job:retry", "task:input", "bulk:make"),
}


@pytest.mark.parametrize(
    ("principal", "permissions"),
    [
        (ENROLMENT, {"pilot:register", "site:advertise"}),
        (PILOT, {"pilot:match", "pilot:report", "pilot:settled"}),
        (CHILD, {"tree:pull", "tree:report"}),
        (JOB, {"job:report"}),
        (SUPERUSER, READS | OPERATES | {"config:edit", "share:edit", "change:draft"}),
        (
            user(atlas="submitter"),
            READS
            | {"task:command", "task:pause", "task:submit", "dataset:grant", "task:look", "bulk:make"}
            | {"task:reassign", "task:tries", "task:input", "job:kill", "job:retry", "dataset:close", "dataset:recover"},
        ),
        (user(atlas="operator"), READS | OPERATES),
        (user(atlas="auditor"), READS),
        (user(atlas="share-editor"), READS | {"share:look", "share:edit", "change:draft"}),
    ],
)
def test_each_kind_and_role_has_these_and_no_others(principal: Principal, permissions: set[str]) -> None:
    assert {p for p in PERMISSIONS if may(principal, p)} == permissions


def test_a_submitter_commands_only_own_tasks_and_an_operator_all_of_the_vo() -> None:
    alice, operator = user(atlas="submitter"), user(atlas="operator")
    assert may(alice, "task:command", "atlas", "alice")
    assert not may(alice, "task:command", "atlas", "bob")
    assert not may(alice, "task:command", "atlas")
    assert not may(alice, "task:command", "cms", "alice")
    assert may(operator, "task:command", "atlas", "bob")
    assert not may(operator, "task:command", "cms", "bob")


def test_who_submitted_for_the_owner_commands_while_he_has_the_role_for_that() -> None:
    assert may(user(atlas="submitter production"), "task:command", "atlas", "bob", "alice")
    for roles in ("submitter", "production", "submitter share-editor auditor"):
        assert not may(user(atlas=roles), "task:command", "atlas", "bob", "alice")
    assert not may(user(atlas="submitter production"), "task:command", "atlas", "bob", "carol")
    assert not may(user(atlas="submitter", cms="submitter production"), "task:command", "atlas", "bob", "alice")


def test_an_owner_who_lost_the_role_commands_nothing() -> None:
    assert not may(user(atlas="auditor"), "task:command", "atlas", "alice")


def test_a_role_in_one_vo_counts_there_only() -> None:
    both = user(atlas="submitter", cms="auditor")
    assert may(both, "task:submit", "atlas")
    assert not may(both, "task:submit", "cms")
    assert visible_vos(both).names == {"atlas", "cms"}
    assert visible_vos(both, "task:submit").names == {"atlas"}
    assert "lhcb" not in visible_vos(both)


def test_a_superuser_sees_all_and_submits_nowhere() -> None:
    assert visible_vos(SUPERUSER).everything
    assert "anything" in visible_vos(SUPERUSER)
    assert not may(SUPERUSER, "task:submit", "atlas")
    assert not visible_vos(SUPERUSER, "task:submit").everything


def test_a_pilot_with_a_vo_is_of_that_vo_and_one_without_is_of_any() -> None:
    assert visible_vos(PILOT, "pilot:match").everything
    assert visible_vos(ATLAS_PILOT, "pilot:match").names == {"atlas"}
    assert may(ATLAS_PILOT, "pilot:match", "atlas")
    assert not may(ATLAS_PILOT, "pilot:match", "cms")


def test_an_unknown_permission_is_told_with_the_nearest_known() -> None:
    with pytest.raises(UnknownName, match="task:read"):
        may(PILOT, "task:reed")


vos = st.sampled_from(["atlas", "cms", "lhcb"])
holdings = st.dictionaries(vos, st.frozensets(st.sampled_from(ROLES)))


@given(holdings, vos, st.sampled_from(sorted(PERMISSIONS)))
def test_the_scope_of_lists_and_the_answer_for_one_object_agree(
    roles: dict[str, frozenset[str]], vo: str, permission: str
) -> None:
    principal = Principal("user", "alice", roles=roles)
    assert (vo in visible_vos(principal, permission)) == may(principal, permission, vo, "alice")
    assert may(principal, permission) == any(may(principal, permission, v, "alice") for v in roles)
