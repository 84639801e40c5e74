"""A real server, the client as one file, and people with tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pytest_django import DjangoDbBlocker

from broker_site.client import bundle
from tests.api.people import person
from tests.client.broker import Broker
from tests.web.serving import Server, serving

BrokerOf = Callable[..., Broker]


@pytest.fixture(scope="package")
def server(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker, redis_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """Ours, with the limits of `up`."""
    with serving(tmp_path_factory.mktemp("web") / "rsgi.log", REDIS_URL=redis_url) as it:
        yield it


@pytest.fixture(scope="session")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make client` makes."""
    target = tmp_path_factory.mktemp("client") / "broker"
    bundle.write(target)
    return target


@pytest.fixture
def url(server: Server) -> str:
    return f"http://127.0.0.1:{server.port}"


@pytest.fixture
def broker_of(file: Path, url: str, tmp_path: Path, db: None) -> BrokerOf:
    """The command of somebody with these roles, each (VO, role)."""

    def made(name: str, *roles: tuple[str, str], at: str = url, superuser: bool = False) -> Broker:
        folder = tmp_path / name
        folder.mkdir()
        environ = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "LC_ALL": "C.UTF-8"}
        environ |= {"GRIDBROKER_URL": at, "GRIDBROKER_TOKEN": person(name, *roles, superuser=superuser).token}
        return Broker(file, folder, environ)

    return made


@pytest.fixture
def ada(broker_of: BrokerOf) -> Broker:
    """A submitter of demo."""
    return broker_of("ada", ("demo", "submitter"))
