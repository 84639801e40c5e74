"""What the tests of access share: a fresh cache of credentials, the sample site, and callers of each kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from django.test import Client
from pytest_django import Settings

from broker_site.foundation.access import login_limits
from broker_site.foundation.access.authentication import forget_verified
from broker_site.foundation.access.credentials import ensure_user
from broker_site.foundation.access.models import User
from broker_site.foundation.access.strangers import STRANGERS


@pytest.fixture(autouse=True)
def fresh_cache() -> Iterator[None]:
    forget_verified()
    STRANGERS.forget()
    login_limits.forget()
    yield
    forget_verified()
    STRANGERS.forget()
    login_limits.forget()


@pytest.fixture
def sample_site(settings: Settings) -> None:
    settings.ROOT_URLCONF = "tests.access.sample_urls"


@pytest.fixture
def alice(db: None) -> User:
    """A submitter of atlas."""
    return ensure_user("alice", roles=[("atlas", "submitter")])


@pytest.fixture
def bearer() -> Callable[[str], Client]:
    """A client that shows this token and enforces CSRF as a server does."""

    def client(text: str) -> Client:
        return Client(enforce_csrf_checks=True, headers={"Authorization": f"Bearer {text}"}, raise_request_exception=False)

    return client
