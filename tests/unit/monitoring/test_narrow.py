"""Which candidates the page of a decision shows, and the addresses of its links."""

from __future__ import annotations

import pytest

from monitoring.explain.narrow import Narrow, read_narrow

CRITERIA = ("-status", "-disk", "-disk", "-lowmemory")


@pytest.mark.parametrize(
    ("narrow", "marks", "shown"),
    [
        (Narrow(), "....", True),
        (Narrow(name="alp"), "....", True),
        (Narrow(name="AL*"), "....", True),
        (Narrow(name="a?pha"), "....", True),
        (Narrow(name="*[A]*"), "....", False),
        (Narrow(name="bet"), "....", False),
        (Narrow(show="chosen"), "....", True),
        (Narrow(show="chosen"), "..t.", False),
        (Narrow(show="skipped"), "..T.", True),
        (Narrow(criterion="-disk"), "..T.", True),
        (Narrow(criterion="-disk"), "P.t.", False),
        (Narrow(criterion="-disk", how="any"), "P.t.", True),
        (Narrow(criterion="-disk", how="alone"), "P.t.", False),
        (Narrow(criterion="-disk", how="alone"), ".Tp.", True),
        (Narrow(criterion="-disk", how="any"), "P..p", False),
        (Narrow(criterion="-nothing", how="any"), "P..p", False),
    ],
)
def test_what_is_shown(narrow: Narrow, marks: str, shown: bool) -> None:
    assert narrow.takes("ALPHA", marks, CRITERIA) is shown


def test_links_keep_the_filter_and_begin_at_the_first_page() -> None:
    narrow = Narrow(decision="7", name="A&B", criterion="-disk", how="any", page=3)
    assert narrow.address() == "?decision=7&name=A%26B&criterion=-disk&how=any"
    assert narrow.address(page=4) == "?decision=7&name=A%26B&criterion=-disk&how=any&page=4"
    assert narrow.address(criterion="", name="") == "?decision=7"
    assert narrow.address(queue="N/MCORE") == "?decision=7&name=A%26B&criterion=-disk&how=any&queue=N%2FMCORE"


@pytest.mark.parametrize("page", ["", "0", "-1", "x", "1e3", "999999", "²"])
def test_a_page_that_is_none_is_the_first(page: str) -> None:
    assert read_narrow({"page": page, "how": "x", "show": "y"}, 1) == Narrow(decision="1")
