"""At which sites an element may run (row W2, facts on work queues b3): all of its input is there, and its lists name them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

Places = Mapping[str, Collection[str]]
"""Sites of each dataset; none where it is known nowhere."""


@dataclass(frozen=True, slots=True)
class SiteWishes:
    """What an element says of sites.

    `included`, `excluded`: its lists of sites; `inputs`, `parents` and `pileup`: where its data are; `needs_parents`: whether the
    parents of its input are read; `trusts_sites`, `trusts_pileup_sites`: input with parents, or pile-up, is read over the network
    from wherever it is.
    """

    included: Collection[str]
    excluded: Collection[str] = ()
    inputs: Places = field(default_factory=dict)
    parents: Places = field(default_factory=dict)
    pileup: Places = field(default_factory=dict)
    needs_parents: bool = False
    trusts_sites: bool = False
    trusts_pileup_sites: bool = False


def possible_sites(wishes: SiteWishes) -> frozenset[str]:
    """The sites that have all of the input, parents and pile-up that the element reads there, and that its lists let it go to."""
    sites = frozenset(wishes.included) - frozenset(wishes.excluded)
    for places in _data(wishes):
        for there in places.values():
            sites &= frozenset(there)
    return sites


def _data(wishes: SiteWishes) -> Iterator[Places]:
    """Data that have to be at the site."""
    if not wishes.trusts_sites:
        yield wishes.inputs
        if wishes.needs_parents:
            yield wishes.parents
    if not wishes.trusts_pileup_sites:
        yield wishes.pileup


def data_missing(wishes: SiteWishes, site: str) -> str:
    """What the element reads at a site that is not there: the first dataset in words; empty: all is there."""
    lacking = (name for places in _data(wishes) for name, there in places.items() if site not in there)
    return next(lacking, "")
