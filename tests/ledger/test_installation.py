"""Which broker this is: the same as long as its database is the one that it was; else another incarnation of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.child_broker import Child
from workqueues.ledger.installation import COPIED, FIRST, NO_FILE, RESTORED, begin_anew, identity, renew_if_restored
from workqueues.models import Installation

pytestmark = pytest.mark.django_db


@pytest.fixture
def file(settings: Any, tmp_path: Path) -> Path:
    settings.INSTALLATION_FILE = str(tmp_path / "kept" / "installation.json")
    return tmp_path / "kept" / "installation.json"


def test_it_stays_who_it_is(file: Path) -> None:
    first = identity()
    marks = [renew_if_restored().mark for _ in range(3)]
    assert identity() == first
    assert (Installation.objects.get().why, marks) == (FIRST, sorted(set(marks)))


@pytest.mark.parametrize("how", ["older", "copied", "file lost", "file broken"])
def test_another_database_is_another_incarnation(file: Path, how: str) -> None:
    first = identity()
    renew_if_restored()
    if how == "older":
        Installation.objects.update(mark=1)
    elif how == "copied":
        Installation.objects.update(instance=uuid4())
    elif how == "file lost":
        file.unlink()
    else:
        file.write_text("{")
    row = renew_if_restored()
    assert row.incarnation != first.incarnation
    assert (row.instance == first.instance) is (how != "copied")
    assert row.why == {"older": RESTORED, "copied": COPIED}.get(how, NO_FILE)
    assert renew_if_restored().incarnation == row.incarnation


def test_the_operator_may_say_so(file: Path) -> None:
    first = identity()
    begin_anew("manage.py after_restore")
    assert identity().instance == first.instance
    assert identity().incarnation != first.incarnation


def test_a_broker_is_neither_its_own_child_nor_below_its_child(file: Path) -> None:
    child = Child(sites={})
    child.instance = str(identity().instance)
    answer = child.pull()
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (409, "instance")
