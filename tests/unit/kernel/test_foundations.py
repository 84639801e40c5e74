"""Clock, dice and registry: what agents, decisions and declarations rely on."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from broker_site.foundation.kernel import clock
from broker_site.foundation.kernel.dice import dice
from broker_site.foundation.kernel.registry import Registry


def test_the_clock_stops_where_a_test_says_and_goes_on_after() -> None:
    at = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
    with clock.frozen(at):
        assert clock.now() == at
    assert clock.now() > at


def test_equal_seeds_give_equal_dice_and_parts_do_not_run_together() -> None:
    assert dice(7, "a").random() == dice(7, "a").random()
    assert dice("1", "23").random() != dice("12", "3").random()


def test_a_registry_refuses_a_second_declaration_and_names_the_nearest() -> None:
    registry: Registry[int] = Registry("filter")
    registry.add("memory", 1)
    with pytest.raises(ValueError, match="filter 'memory' is declared twice"):
        registry.add("memory", 2)
    with pytest.raises(KeyError, match="did you mean memory"):
        registry["memroy"]
    assert list(registry) == ["memory"]


def test_what_a_block_declares_is_forgotten_if_it_breaks() -> None:
    registry: Registry[int] = Registry("filter")
    registry.add("memory", 1)
    with pytest.raises(ZeroDivisionError), registry.all_or_nothing():
        registry.add("cores", 2 // 0)
    with pytest.raises(ZeroDivisionError), registry.all_or_nothing():
        registry.add("cores", 2)
        registry.add("disk", 2 // 0)
    assert list(registry) == ["memory"]
    with registry.all_or_nothing():
        registry.add("cores", 2)
    assert list(registry) == ["memory", "cores"]
