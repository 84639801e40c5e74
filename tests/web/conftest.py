"""Servers that the tests of this folder share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytest_django import DjangoDbBlocker

from tests.web.serving import Server, serving


@pytest.fixture(scope="package")
def server(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker, redis_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """Ours, with the limits of `up`."""
    with serving(tmp_path_factory.mktemp("web") / "rsgi.log", REDIS_URL=redis_url) as it:
        yield it
