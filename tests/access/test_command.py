"""`manage.py token`: what an operator does from the shell."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from broker_site.foundation.access.authentication import principal_of_token
from broker_site.foundation.access.models import Credential, User
from broker_site.foundation.access.tokens import BadToken
from brokerage.models import ComputingQueue
from tests.builders import grid

pytestmark = pytest.mark.django_db


def run(*words: str) -> str:
    out = StringIO()
    call_command("token", *words, stdout=out, stderr=StringIO())
    return out.getvalue().strip()


def test_create_prints_a_token_that_stands_on_the_users_roles(alice: User) -> None:
    text = run("create", "alice")
    assert principal_of_token(text).roles == {"atlas": {"submitter"}}


def test_grant_makes_user_and_role_and_limits_the_token() -> None:
    text = run("create", "bob", "--vo", "cms", "--role", "operator", "--role", "submitter", "--grant", "--days", "2")
    assert principal_of_token(text).roles == {"cms": {"operator", "submitter"}}
    assert not User.objects.get(username="bob").has_usable_password()


def test_without_grant_a_role_that_is_not_held_is_an_error(alice: User) -> None:
    with pytest.raises(CommandError, match="alice is not operator in atlas; --grant"):
        run("create", "alice", "--vo", "atlas", "--role", "operator")
    with pytest.raises(CommandError, match="no user 'zoe'"):
        run("create", "zoe")
    with pytest.raises(CommandError, match="--grant needs"):
        run("create", "zoe", "--grant")
    assert not Credential.objects.exists()
    assert not User.objects.filter(username="zoe").exists()


def test_a_token_for_a_vo_in_which_the_user_may_nothing_is_not_made(alice: User) -> None:
    with pytest.raises(CommandError, match="alice has no role in cms; --grant with --role gives one"):
        run("create", "alice", "--vo", "cms")
    assert not Credential.objects.exists()


def test_no_user_is_made_under_a_name_that_the_admin_refuses() -> None:
    with pytest.raises(CommandError, match="the name 'al ice' cannot be a user's: Enter a valid username"):
        run("create", "al ice", "--vo", "cms", "--role", "operator", "--grant")
    assert not User.objects.filter(username="al ice").exists()


def test_enrol_prints_a_secret_of_the_queue() -> None:
    grid("ALPHA")
    found = principal_of_token(run("enrol", "ALPHA", "--site", "SITE_ALPHA", "--vo", "atlas"))
    assert (found.kind, found.queue, found.site, found.vo) == ("enrolment", "ALPHA", "SITE_ALPHA", "atlas")
    assert (found.pilot_kind, found.private, found.owner) == ("generic", False, "")


def test_enrol_takes_several_queues_of_one_site() -> None:
    grid("ALPHA", "GAMMA", "BETA")
    ComputingQueue.objects.exclude(name="BETA").update(site="SITE_ALPHA")
    found = principal_of_token(run("enrol", "ALPHA", "GAMMA", "ALPHA", "--site", "SITE_ALPHA"))
    assert (found.queues, found.queue, found.name) == (("ALPHA", "GAMMA"), "", "enrolment of ALPHA and 1 more")
    with pytest.raises(CommandError, match=r"queues: .*one site: ALPHA is at the site SITE_ALPHA, BETA at SITE_BETA"):
        run("enrol", "ALPHA", "BETA", "--site", "SITE_ALPHA")
    with pytest.raises(CommandError, match="site: several computing queues need their site: SITE_ALPHA"):
        run("enrol", "ALPHA", "GAMMA")
    with pytest.raises(CommandError, match="queues: there is no computing queue GAMA; the nearest name is GAMMA"):
        run("enrol", "ALPHA", "GAMA", "--site", "SITE_ALPHA")
    with pytest.raises(CommandError, match="queues: at most 100 computing queues, found 101"):
        run("enrol", *["ALPHA"] * 101, "--site", "SITE_ALPHA")
    assert Credential.objects.count() == 1


def test_enrol_makes_a_secret_for_the_pilots_of_one_owner(alice: User) -> None:
    grid("ALPHA")
    found = principal_of_token(run("enrol", "ALPHA", "--private", "--owner", "alice", "--owner-group", "higgs"))
    assert (found.private, found.owner, found.owner_group) == (True, "alice", "higgs")
    assert principal_of_token(run("enrol", "ALPHA", "--private", "--owner", "alice")).owner_group == ""


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--private"], "owner: a private enrolment needs the owner"),
        (["--private", "--owner", "zoe"], "owner: there is no active user zoe"),
        (["--owner", "alice"], "owner: only a private enrolment has an owner"),
        (["--owner-group", "higgs"], "owner_group: only a private enrolment has an owner, and a group"),
        (["--private", "--owner", "alice", "--owner-group", "g" * 65], "owner_group: at most 64 characters, found 65"),
    ],
)
def test_a_secret_that_does_not_say_whose_pilots_is_not_made(alice: User, words: list[str], told: str) -> None:
    grid("ALPHA")
    with pytest.raises(CommandError, match=told):
        run("enrol", "ALPHA", *words)
    assert not Credential.objects.exists()


def test_a_secret_for_a_queue_or_site_that_does_not_exist_is_not_made() -> None:
    grid("ALPHA")
    with pytest.raises(CommandError, match="no computing queue APLHA; the nearest name is ALPHA"):
        run("enrol", "APLHA")
    with pytest.raises(CommandError, match="ALPHA is at the site SITE_ALPHA, not at NOWHERE"):
        run("enrol", "ALPHA", "--site", "NOWHERE")
    assert not Credential.objects.exists()


def test_revoke_by_prefix_or_by_the_whole_secret(alice: User) -> None:
    grid("ALPHA")
    first, second = run("create", "alice"), run("enrol", "ALPHA")
    assert run("revoke", first[:12]) == "1 revoked"
    assert run("revoke", second) == "1 revoked"
    for text in (first, second):
        with pytest.raises(BadToken):
            principal_of_token(text)
    with pytest.raises(CommandError, match="no credential"):
        run("revoke", "gbu_nothing1")


@pytest.mark.parametrize("days", ["0", "-1", "nan", "1e9"])
def test_a_life_out_of_range_is_an_error(alice: User, days: str) -> None:
    with pytest.raises(CommandError, match="--days"):
        run("create", "alice", "--days", days)


def test_prune_says_how_many_it_forgot() -> None:
    assert run("prune") == "0 forgotten"
