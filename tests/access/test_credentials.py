"""Credentials: who is let in with what, for how long, and how soon not any more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from threading import Thread
from uuid import uuid4

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.migrations.executor import MigrationExecutor
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from broker_site.foundation.access import authentication
from broker_site.foundation.access.authentication import principal_of_token
from broker_site.foundation.access.credentials import (
    ensure_user,
    forget_expired,
    give_role,
    issue_enrolment,
    issue_pilot_token,
    issue_user_token,
    revoke,
)
from broker_site.foundation.access.models import Audit, Credential, Role, User
from broker_site.foundation.access.problems import Refused
from broker_site.foundation.access.tokens import BadToken, digest, mint_job_token, new_secret
from broker_site.foundation.kernel import clock

Bearer = Callable[[str], Client]
TASKS, MATCH, REGISTER = "/api/v1/tasks/", "/api/v1/pilots/match/", "/api/v1/pilots/"
REPORT = "/api/v1/jobs/7/report/"

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sample_site")]


def status(client: Client, address: str) -> int:
    if address == TASKS:
        return client.get(address).status_code
    return client.post(address, {}, content_type="application/json").status_code


def later(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Let this much time pass for the cache of credentials."""
    real = authentication.time.monotonic()
    monkeypatch.setattr(authentication.time, "monotonic", lambda: real + seconds)


def test_a_user_token_opens_what_the_user_may_and_nothing_else(alice: User, bearer: Bearer) -> None:
    client = bearer(issue_user_token(alice).text)
    assert client.get(TASKS).json() == {"name": "alice", "vos": ["atlas"]}
    assert status(client, MATCH) == status(client, REGISTER) == status(client, REPORT) == 403


def test_enrolment_pilot_and_job_open_their_own_door_only(bearer: Bearer) -> None:
    enrolment = issue_enrolment("ALPHA", site="A")
    pilot = issue_pilot_token(principal_of_token(enrolment.text), uuid4())
    doors = {REGISTER: enrolment.text, MATCH: pilot.text, REPORT: mint_job_token(7, 1, 60)}
    for door in (TASKS, REGISTER, MATCH, REPORT):
        for own, token in doors.items():
            assert status(bearer(token), door) == (200 if door == own else 403), (door, own)


def test_a_job_token_opens_its_own_job_only(bearer: Bearer) -> None:
    client = bearer(mint_job_token(7, 1, 60))
    assert status(client, "/api/v1/jobs/7/report/") == 200
    assert status(client, "/api/v1/jobs/8/report/") == 403
    assert status(client, "/api/v1/jobs/77/report/") == 403


def test_a_pilot_is_of_the_queue_and_site_of_its_enrolment() -> None:
    enrolment = issue_enrolment("ALPHA", site="A", vo="atlas")
    pilot_id = uuid4()
    found = principal_of_token(issue_pilot_token(principal_of_token(enrolment.text), pilot_id).text)
    assert (found.kind, found.queue, found.site, found.vo, found.subject) == ("pilot", "ALPHA", "A", "atlas", pilot_id)
    assert (found.pilot_kind, found.owner, found.owner_group) == ("generic", "", "")


def test_a_pilot_is_of_one_queue_of_its_enrolment_and_does_the_work_of_the_same_owner() -> None:
    enrolment = principal_of_token(issue_enrolment("ALPHA", "GAMMA", site="A", owner="alice", owner_group="higgs").text)
    found = principal_of_token(issue_pilot_token(enrolment, uuid4(), queue="GAMMA").text)
    assert (found.queues, found.queue, found.site) == (("GAMMA",), "GAMMA", "A")
    assert (found.private, found.owner, found.owner_group) == (True, "alice", "higgs")
    with pytest.raises(ValueError, match="the enrolment is for ALPHA, GAMMA, not for BETA"):
        issue_pilot_token(enrolment, uuid4(), queue="BETA")
    with pytest.raises(ValueError, match="not for no queue"):
        issue_pilot_token(enrolment, uuid4())


def test_what_a_pilot_does_is_what_the_row_of_its_enrolment_says_and_not_what_somebody_claims() -> None:
    """The row counts: a principal made up with other queues or without owner gets nothing more."""
    enrolment = principal_of_token(issue_enrolment("ALPHA", owner="alice").text)
    claimed = replace(enrolment, queues=("ALPHA", "BETA"), pilot_kind="generic", owner="")
    with pytest.raises(ValueError, match="not for BETA"):
        issue_pilot_token(claimed, uuid4(), queue="BETA")
    assert principal_of_token(issue_pilot_token(claimed, uuid4(), queue="ALPHA").text).owner == "alice"


def test_the_database_holds_no_pilot_of_several_queues_and_no_private_one_without_owner() -> None:
    enrolment = issue_enrolment("ALPHA").credential
    pilot = issue_pilot_token(principal_of_token(issue_enrolment("ALPHA").text), uuid4()).credential
    for row, fault in (
        (enrolment, {"queues": []}),
        (enrolment, {"pilot_kind": "private"}),
        (enrolment, {"owner": "alice"}),
        (enrolment, {"owner_group": "higgs"}),
        (pilot, {"queues": ["ALPHA", "BETA"]}),
        (pilot, {"queues": []}),
    ):
        with pytest.raises(IntegrityError), transaction.atomic():
            Credential.objects.filter(pk=row.pk).update(**fault)


def test_the_audit_says_whose_pilots_an_enrolment_lets_in() -> None:
    issue_enrolment("ALPHA", "GAMMA", owner="alice", owner_group="higgs")
    after = Audit.objects.get(act="credential.create").after or {}
    assert after["queues"] == ["ALPHA", "GAMMA"]
    assert (after["pilot_kind"], after["owner"], after["owner_group"]) == ("private", "alice", "higgs")


SECRETS_OF_BEFORE = """
INSERT INTO access_credential (kind, prefix, secret, user_id, vo, site, queue, claims, note, parent_id, subject, expires_at)
VALUES ('enrolment', 'gbe_a', %(enrolment)s, NULL, 'atlas', 'A', 'ALPHA', '{}', '', NULL, NULL, NULL),
    ('user', 'gbu_a', %(user)s, %(user_id)s, '', '', '', '{}', '', NULL, NULL, NULL)
"""


@pytest.mark.django_db(transaction=True)
def test_secrets_of_before_stay_valid_as_they_are(alice: User, to_the_newest: None) -> None:
    texts = {kind: new_secret(kind) for kind in ("enrolment", "user")}
    steps = MigrationExecutor(connection)
    steps.migrate([("access", "0004_audit_seals")])
    with connection.cursor() as cursor:
        cursor.execute(SECRETS_OF_BEFORE, {kind: digest(text) for kind, text in texts.items()} | {"user_id": alice.pk})
        cursor.execute(
            "INSERT INTO access_credential (kind, prefix, secret, vo, site, queue, claims, note, parent_id, subject, expires_at)"
            " SELECT 'pilot', 'gbp_a', %s, vo, site, queue, claims, note, id, %s, now() + interval '1 hour'"
            " FROM access_credential WHERE kind = 'enrolment'",
            [digest(pilot := new_secret("pilot")), uuid4()],
        )
    MigrationExecutor(connection).migrate([("access", "0005_enrolments_of_several_queues")])
    for text in (texts["enrolment"], pilot):
        found = principal_of_token(text)
        assert (found.queues, found.site, found.vo, found.pilot_kind) == (("ALPHA",), "A", "atlas", "generic")
    assert principal_of_token(texts["user"]).queues == ()
    MigrationExecutor(connection).migrate([("access", "0004_audit_seals")])
    with connection.cursor() as cursor:
        cursor.execute("SELECT kind, queue FROM access_credential ORDER BY kind")
        assert cursor.fetchall() == [("enrolment", "ALPHA"), ("pilot", "ALPHA"), ("user", "")]


@pytest.mark.parametrize(
    "header",
    [
        "Bearer",
        "Bearer ",
        "bearer x",
        "Bearer gbu_short",
        "Bearer a b",
        "Bearer gbj_1.1.1.1.00",
        "BearerX y",
        "Bearer " + "x" * 9000,
    ],
)
def test_a_bad_bearer_is_401_even_beside_a_good_session(alice: User, header: str) -> None:
    client = Client()
    client.force_login(alice)
    assert client.get(TASKS).status_code == 200
    refused = client.get(TASKS, headers={"Authorization": header})
    assert refused.status_code == 401
    assert refused["WWW-Authenticate"].startswith("Bearer")
    assert client.get("/tasks/", headers={"Authorization": header}).status_code == 401


def test_no_credential_is_401_with_the_way_to_get_in(client: Client) -> None:
    for address in (TASKS, MATCH, REGISTER, REPORT):
        response = client.get(address)
        assert response.status_code == 401
        assert response["WWW-Authenticate"].startswith("Bearer")
        assert response["Content-Type"] == "application/problem+json"


def test_an_unknown_token_is_401(bearer: Bearer, alice: User) -> None:
    text = issue_user_token(alice).text
    for wrong in (text[:-1] + ("a" if text[-1] != "a" else "b"), text.replace("gbu_", "gbp_"), text.upper()):
        assert status(bearer(wrong), TASKS) == 401


def test_expired_tokens_are_401_though_still_remembered(alice: User, bearer: Bearer) -> None:
    user = bearer(issue_user_token(alice, seconds=60).text)
    enrolment = issue_enrolment("ALPHA", seconds=60)
    pilot = bearer(issue_pilot_token(principal_of_token(enrolment.text), uuid4(), 60).text)
    job = bearer(mint_job_token(7, 1, 60))
    cases = [(user, TASKS), (bearer(enrolment.text), REGISTER), (pilot, MATCH), (job, REPORT)]
    assert [status(c, door) for c, door in cases] == [200] * 4
    with clock.frozen(clock.now() + timedelta(seconds=61)):
        assert [status(c, door) for c, door in cases] == [401] * 4


def test_a_pilot_token_lives_a_day_at_most() -> None:
    enrolment = principal_of_token(issue_enrolment("ALPHA").text)
    row = issue_pilot_token(enrolment, uuid4(), 10 * 86_400).credential
    assert row.expires_at is not None
    assert row.expires_at <= clock.now() + timedelta(days=1)


def test_a_revocation_elsewhere_is_effective_within_five_seconds(
    alice: User, bearer: Bearer, monkeypatch: pytest.MonkeyPatch
) -> None:
    issued = issue_user_token(alice)
    client = bearer(issued.text)
    assert status(client, TASKS) == 200
    Credential.objects.filter(pk=issued.credential.pk).update(revoked_at=clock.now())  # as another process would
    later(monkeypatch, 5.0)
    assert status(client, TASKS) == 401


def test_a_revocation_here_is_effective_at_once(
    alice: User, bearer: Bearer, django_capture_on_commit_callbacks: Callable[..., object]
) -> None:
    issued = issue_user_token(alice)
    assert status(bearer(issued.text), TASKS) == 200
    with django_capture_on_commit_callbacks(execute=True):  # type: ignore[attr-defined]
        assert revoke([issued.credential]) == 1
    assert status(bearer(issued.text), TASKS) == 401
    assert revoke([issued.credential]) == 0


def test_revoking_an_enrolment_ends_its_pilots_and_their_jobs(bearer: Bearer, monkeypatch: pytest.MonkeyPatch) -> None:
    enrolment, other = issue_enrolment("ALPHA"), issue_enrolment("BETA")
    pilot = issue_pilot_token(principal_of_token(enrolment.text), uuid4())
    neighbour = issue_pilot_token(principal_of_token(other.text), uuid4())
    job = bearer(mint_job_token(7, 1, 60, pilot=pilot.credential.pk))
    other_job = bearer(mint_job_token(7, 1, 60, pilot=neighbour.credential.pk))
    assert [status(bearer(pilot.text), MATCH), status(job, REPORT)] == [200, 200]
    assert revoke([enrolment.credential]) == 2
    later(monkeypatch, 5.0)
    assert [status(bearer(enrolment.text), REGISTER), status(bearer(pilot.text), MATCH), status(job, REPORT)] == [401, 401, 401]
    assert [status(bearer(neighbour.text), MATCH), status(other_job, REPORT)] == [200, 200]


def test_an_enrolment_that_only_expires_keeps_its_pilots(bearer: Bearer) -> None:
    enrolment = issue_enrolment("ALPHA", seconds=60)
    pilot = bearer(issue_pilot_token(principal_of_token(enrolment.text), uuid4()).text)
    with clock.frozen(clock.now() + timedelta(seconds=61)):
        assert [status(bearer(enrolment.text), REGISTER), status(pilot, MATCH)] == [401, 200]


def test_a_revoked_enrolment_that_is_still_remembered_enrols_nobody() -> None:
    enrolment = issue_enrolment("ALPHA")
    remembered = principal_of_token(enrolment.text)
    revoke([enrolment.credential])
    with pytest.raises(Refused, match="401"):
        issue_pilot_token(remembered, uuid4())


def test_a_role_that_is_taken_away_is_gone_with_the_next_request(alice: User, bearer: Bearer) -> None:
    session = Client()
    session.force_login(alice)
    give_role(alice, "cms", "operator")
    enrolment = issue_enrolment("ALPHA", vo="cms", user=alice)
    pilot = issue_pilot_token(principal_of_token(enrolment.text), uuid4())
    cases = [
        (session, TASKS),
        (bearer(issue_user_token(alice).text), TASKS),
        (bearer(enrolment.text), REGISTER),
        (bearer(pilot.text), MATCH),
    ]
    assert [status(c, door) for c, door in cases] == [200] * 4
    Role.objects.get(user=alice, vo="atlas", role="submitter").delete()
    Role.objects.get(user=alice, vo="cms", role="operator").delete()
    assert [status(c, door) for c, door in cases] == [403, 403, 401, 401]
    give_role(alice, "atlas", "auditor")
    assert [status(c, door) for c, door in cases] == [200, 200, 401, 401]


def test_the_jobs_of_a_pilot_end_with_the_role_that_it_stands_on(bearer: Bearer, monkeypatch: pytest.MonkeyPatch) -> None:
    keeper = ensure_user("keeper", roles=[("cms", "operator")])
    enrolment = issue_enrolment("ALPHA", vo="cms", user=keeper)
    pilot = issue_pilot_token(principal_of_token(enrolment.text), uuid4())
    job = bearer(mint_job_token(7, 1, 60, pilot=pilot.credential.pk))
    assert status(job, REPORT) == 200
    Role.objects.get(user=keeper, vo="cms", role="operator").delete()
    later(monkeypatch, 5.0)
    assert status(job, REPORT) == 401


def test_a_user_who_is_switched_off_is_out_with_the_next_request(alice: User, bearer: Bearer) -> None:
    session = Client()
    session.force_login(alice)
    token = bearer(issue_user_token(alice).text)
    assert [status(session, TASKS), status(token, TASKS)] == [200, 200]
    User.objects.filter(pk=alice.pk).update(is_active=False)
    assert [status(session, TASKS), status(token, TASKS)] == [401, 401]


def test_a_limited_token_has_less_than_its_user_and_never_more(alice: User) -> None:
    give_role(alice, "atlas", "operator")
    give_role(alice, "cms", "auditor")
    atlas = principal_of_token(issue_user_token(alice, vo="atlas", roles=["submitter", "share-editor"]).text)
    assert atlas.roles == {"atlas": {"submitter"}}
    root = ensure_user("root", superuser=True)
    assert principal_of_token(issue_user_token(root).text).superuser
    assert not principal_of_token(issue_user_token(root, roles=["auditor"]).text).superuser


def test_an_unknown_role_is_refused(alice: User) -> None:
    with pytest.raises(ValueError, match="there are submitter"):
        give_role(alice, "atlas", "boss")
    with pytest.raises(ValueError, match="unknown role boss"):
        issue_user_token(alice, roles=["boss"])


def test_the_text_of_a_secret_is_nowhere_in_the_database(alice: User) -> None:
    issued = [issue_user_token(alice), issue_enrolment("ALPHA")]
    rows = str(list(Credential.objects.values_list())) + str(list(Audit.objects.values_list()))
    for one in issued:
        assert one.text not in rows
        assert one.credential.prefix in rows


def test_a_remembered_pilot_costs_no_query_and_a_user_two(
    alice: User, bearer: Bearer, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    pilot = issue_pilot_token(principal_of_token(issue_enrolment("ALPHA").text), uuid4()).text
    user = issue_user_token(alice).text
    job = mint_job_token(7, 1, 60)
    for text, queries in ((pilot, 0), (user, 2), (job, 0)):
        principal_of_token(text)
        principal_of_token(text)
        with django_assert_num_queries(queries):
            principal_of_token(text)


def test_the_day_of_the_last_use_is_noted(alice: User) -> None:
    issued = issue_user_token(alice)
    principal_of_token(issued.text)
    issued.credential.refresh_from_db()
    assert issued.credential.last_used == clock.now().date()


def test_long_expired_credentials_are_forgotten_and_no_others(alice: User) -> None:
    enrolment = issue_enrolment("ALPHA", seconds=60)
    issue_pilot_token(principal_of_token(enrolment.text), uuid4(), 60)
    kept = issue_user_token(alice)
    with clock.frozen(clock.now() + timedelta(days=31)):
        assert forget_expired() == 2
    assert list(Credential.objects.all()) == [kept.credential]


def test_making_and_revoking_and_giving_roles_are_audited(alice: User) -> None:
    issued = issue_user_token(alice, vo="atlas")
    revoke([issued.credential])
    assert list(Audit.objects.order_by("id").values_list("act", flat=True)) == [
        "user.create",
        "role.give",
        "credential.create",
        "credential.revoke",
    ]


def test_what_is_not_ours_is_no_token(alice: User) -> None:
    for text in ("", "gbx_" + "a" * 43, "gbu_" + "a" * 44, "gbu_" + "a" * 42 + "\x00", "eyJhbGciOiJub25lIn0.e30."):
        with pytest.raises(BadToken):
            principal_of_token(text)


@pytest.mark.django_db(transaction=True)
def test_a_revocation_meets_also_the_pilot_that_enrols_at_the_same_time() -> None:
    enrolment = issue_enrolment("ALPHA")
    seen = principal_of_token(enrolment.text)

    def revoke_elsewhere() -> None:
        revoke([enrolment.credential])
        connection.close()

    other = Thread(target=revoke_elsewhere)
    with transaction.atomic():
        pilot = issue_pilot_token(seen, uuid4())
        other.start()
        other.join(0.3)
        assert other.is_alive()  # it waits for the enrolment's row
    other.join(10)
    pilot.credential.refresh_from_db()
    assert pilot.credential.revoked_at is not None
