"""The agent reap forgets credentials that expired long ago, so that their table does not grow for ever."""

from __future__ import annotations

from datetime import timedelta

from broker_site.foundation import gdpconfig
from broker_site.foundation.access.credentials import issue_user_token
from broker_site.foundation.access.models import Credential, User
from broker_site.foundation.agency.run import new_run
from broker_site.foundation.kernel import clock
from brokerage.agents.reap import CREDENTIALS, Cleanup, reap


def test_reap_forgets_what_expired_long_ago_and_keeps_the_rest(alice: User) -> None:
    issue_user_token(alice, seconds=60)
    kept = [issue_user_token(alice).credential, issue_user_token(alice, seconds=86400 * 50).credential]
    with clock.frozen(clock.now() + timedelta(days=31)):
        assert reap(new_run("reap")) == 0
    assert list(Credential.objects.order_by("id")) == kept


def test_it_does_so_once_a_period_and_keeps_them_as_long_as_is_configured(alice: User) -> None:
    gdpconfig.set_override("agents", "KEEP_EXPIRED", "1d", who="test", why="shorter")
    cleanup, later = Cleanup(CREDENTIALS.period_s, CREDENTIALS.clean), clock.now() + timedelta(days=2)
    cleanup.run(later)
    issue_user_token(alice, seconds=60)
    with clock.frozen(later):
        cleanup.run(later + timedelta(minutes=59))
        assert Credential.objects.count() == 1
        cleanup.run(later + timedelta(minutes=61))
        assert not Credential.objects.exists()
