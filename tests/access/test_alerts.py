"""What of access somebody should look at is told: once an hour about one thing, in the audit, in /metrics and with the agents."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from broker_site.foundation.access.authentication import forget_verified
from broker_site.foundation.access.credentials import ensure_user, issue_user_token, revoke
from broker_site.foundation.access.models import Audit, Credential
from broker_site.foundation.agency.run import run_agent
from broker_site.foundation.gdpconfig import set_override

Bearer = Callable[[str], Client]

pytestmark = pytest.mark.django_db


def alerts() -> list[tuple[str, str, str]]:
    """Of the audit; the agent has looked."""
    run_agent("seal", looked=True)
    return list(Audit.objects.filter(who="alert").order_by("id").values_list("act", "object", "reason"))


@pytest.mark.usefixtures("sample_site")
def test_twenty_refusals_within_a_minute_of_one_credential_are_told_once(bearer: Bearer) -> None:
    ada, bob = (issue_user_token(ensure_user(name, roles=[("cms", "submitter")])).text for name in ("ada", "bob"))
    for token, n in ((ada, 20), (bob, 19)):
        client = bearer(token)
        assert {client.post("/api/v1/kill/9/").status_code for _ in range(n)} == {409}
    told = [("alert.refusals", f"user ada {ada[:12]}", "20 refusals within a minute")]
    assert alerts() == told
    bearer(ada).post("/api/v1/kill/9/")
    assert alerts() == told, "once an hour"


def test_a_revoked_token_that_is_shown_again_is_told(bearer: Bearer, admin_client: Client) -> None:
    token = issue_user_token(ensure_user("ada", roles=[("demo", "submitter")])).text
    revoke(Credential.objects.all(), reason="left")
    forget_verified()
    assert {bearer(token).get("/api/v1/tasks/").status_code for _ in range(3)} == {401}
    assert bearer(token[:-4] + "AAAA").get("/api/v1/tasks/").status_code == 401, "nobody's"
    assert alerts() == [
        ("alert.revoked_token", f"credential user {token[:12]}", "it was revoked, and shown again from 127.0.0.1")
    ]
    assert 'gridbroker_alerts{what="revoked_token"} 1.0' in admin_client.get("/metrics").text
    assert "Alerts of the last day: revoked_token 1." in admin_client.get("/agents/").text


def test_an_edit_of_a_share_outside_of_the_hours_for_it_is_told() -> None:
    Audit.objects.create(who="sue", kind="user", act="globalshare.change", object="globalshare 7 Express", outcome="done")
    Audit.objects.create(who="sue", kind="user", act="role.give", object="user bob", outcome="done")
    assert alerts() == [], "at any time, where no hours are set"
    set_override("alerts", "SHARE_EDITS_TO", 0, who="ada", why="test")
    ((act, target, reason),) = alerts()
    assert (act, target) == ("alert.share_edit", "globalshare 7 Express")
    assert reason.startswith("globalshare.change by sue at ")
