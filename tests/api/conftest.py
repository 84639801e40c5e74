"""What the REST tests share: a cache without Redis, fresh credentials, and people with roles in the VO demo."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.core.cache import cache
from pytest_django import Settings

from broker_site.foundation.access.authentication import forget_verified
from broker_site.foundation.access.strangers import STRANGERS
from tests.api.people import Person, person


@pytest.fixture(autouse=True)
def without_redis(settings: Settings) -> Iterator[None]:
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
    cache.clear()
    forget_verified()
    STRANGERS.forget()
    yield
    forget_verified()
    STRANGERS.forget()


@pytest.fixture
def ada(db: None) -> Person:
    """A submitter of demo."""
    return person("ada", ("demo", "submitter"))


@pytest.fixture
def bob(db: None) -> Person:
    """Another submitter of demo."""
    return person("bob", ("demo", "submitter"))


@pytest.fixture
def olga(db: None) -> Person:
    """A submitter and operator of demo."""
    return person("olga", ("demo", "submitter"), ("demo", "operator"))


@pytest.fixture
def petra(db: None) -> Person:
    """A submitter of demo who may produce for it."""
    return person("petra", ("demo", "submitter"), ("demo", "production"))


@pytest.fixture
def eve(db: None) -> Person:
    """Submitter, operator and auditor of another VO."""
    return person("eve", ("other", "submitter"), ("other", "operator"), ("other", "auditor"))
