"""A batch that fails is halved until the faulty one is found; the others are done in the same run."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from django.db import DataError, InterfaceError, OperationalError
from hypothesis import given
from hypothesis import strategies as st

from broker_site.foundation.agency import batches
from broker_site.foundation.agency.batches import in_halves, in_words, one_by_one
from broker_site.foundation.sql.prepared import AnswerLost


class FromDatabase(Exception):
    """What the driver raises, with the database's code."""

    def __init__(self, code: str) -> None:
        self.pgcode = code


def fault(kind: type[Exception], code: str) -> Exception:
    """An error as Django gives it on."""
    error = kind("text of the database")
    error.__cause__ = FromDatabase(code)
    return error


@given(st.sets(st.integers(0, 99)), st.integers(0, 100))
def test_all_but_the_faulty_ones_are_done_once_each_and_these_are_set_aside_once(faulty: set[int], n: int) -> None:
    done: list[int] = []
    left: list[int] = []

    def work(batch: Sequence[int]) -> int:
        if faulty & set(batch):
            raise ValueError("no")
        done.extend(batch)
        return len(batch)

    handled = in_halves(range(n), work, lambda item, error: left.append(item))
    assert done == [item for item in range(n) if item not in faulty]
    assert (sum(handled), left) == (len(done), [item for item in range(n) if item in faulty])


def test_one_faulty_item_among_a_thousand_is_found_in_few_tries() -> None:
    tries = 0

    def work(batch: Sequence[int]) -> None:
        nonlocal tries
        tries += 1
        if 7 in batch:
            raise ValueError("no")

    in_halves(range(1000), work, lambda item, error: None)
    assert tries <= 21


def test_a_lock_is_waited_for_once_in_each_group_that_it_concerns() -> None:
    tries: list[list[str]] = []
    left: list[str] = []

    def work(batch: Sequence[str]) -> int:
        tries.append(list(batch))
        if any(item.startswith("a") for item in batch):
            raise fault(OperationalError, "55P03")
        return len(batch)

    items = [f"{group}{n}" for n in range(3) for group in "abc"]
    assert sum(in_halves(items, work, lambda item, error: left.append(item), group=lambda item: item[0])) == 6
    assert left == ["a0", "a1", "a2"]
    assert [len(batch) for batch in tries] == [9, 3, 3, 3]


@pytest.mark.parametrize("code", ["57P01", "53300", "08006", ""])
def test_a_fault_of_the_database_as_such_ends_the_run_at_once(code: str) -> None:
    tries = 0

    def work(batch: Sequence[int]) -> None:
        nonlocal tries
        tries += 1
        raise fault(OperationalError, code)

    with pytest.raises(OperationalError):
        in_halves(range(8), work, lambda item, error: None)
    with pytest.raises(InterfaceError):
        one_by_one([1, 2], lambda item: (_ for _ in ()).throw(InterfaceError("gone")), lambda item, error: None)
    assert tries == 1


def test_when_the_time_is_over_the_rest_is_left_for_the_next_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "PATIENCE_S", -1.0)
    left: list[int] = []

    def work(batch: Sequence[int]) -> None:
        raise ValueError("no")

    in_halves(range(4), work, lambda item, error: left.append(item))
    assert left == [0, 1, 2, 3]


def test_of_a_fault_of_the_database_users_read_a_sentence_of_ours() -> None:
    assert in_words(fault(DataError, "22003")) == "a value is larger than can be stored, or of another form"
    assert "text of the database" not in in_words(fault(OperationalError, "XX000"))
    assert in_words(ZeroDivisionError("by zero")) == "ZeroDivisionError: by zero"


def test_no_item_is_set_aside_as_the_connection_broke_under_it() -> None:
    left: list[int] = []

    def work(item: int) -> None:
        error = AnswerLost("server closed the connection unexpectedly")
        error.__cause__ = Exception()
        raise error

    with pytest.raises(AnswerLost):
        one_by_one([1, 2], work, lambda item, error: left.append(item))
    assert not left
