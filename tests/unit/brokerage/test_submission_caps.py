"""Caps of sites beside their thresholds, against one job after the other."""

from __future__ import annotations

from random import Random

import pytest

from brokerage.rules.submission.site_caps import ADVERTISED, RUNNING_LIMIT, Cap
from brokerage.rules.submission.under_thresholds import JobGroup, Load, SiteLoad, submit

SITES, VALUES = ("A", "B"), (("vo", "x"), ("vo", "y"), ("owner", "o"))


@pytest.mark.parametrize("seed", range(20))
def test_a_job_goes_where_every_cap_that_is_about_it_has_room(seed: int) -> None:
    dice = Random(seed)
    load = {site: SiteLoad(Load(15, 100), {"Processing": Load(dice.randint(1, 12), 100)}) for site in SITES}
    caps = {
        Cap(site, *value): dice.randint(-1, 6) for site in SITES for value in ((), *VALUES) if dice.random() < 0.5
    }  # fmt: skip
    groups = [
        JobGroup(str(i), "Processing", 0, 5, dice.randint(1, 5), SITES, frozenset(v for v in VALUES if dice.random() < 0.5))
        for i in range(6)
    ]
    done = submit(groups, load, 1000, 0.2, caps)
    left, given = dict(caps), dict.fromkeys(SITES, 0)
    for group in groups:
        for site in group.sites:
            on = [cap for cap in left if cap.site == site and (not cap.attribute or (cap.attribute, cap.value) in group.values)]
            n = 0
            before = sum(done.jobs.get((group.name, other), 0) for other in group.sites[: group.sites.index(site)])
            while before + n < group.jobs and given[site] < load[site].kinds["Processing"].pending_slots:
                if any(left[cap] <= 0 for cap in on):
                    break
                for cap in on:
                    left[cap] -= 1
                given[site] += 1
                n += 1
            assert done.jobs.get((group.name, site), 0) == n
    reasons = {why for of in done.why_not.values() for why in of.values()}
    assert reasons <= {"NoPendingSlot", "NoTaskPendingSlot", ADVERTISED, RUNNING_LIMIT}
