"""Which candidates the page of a decision shows, and the addresses of its links."""

from __future__ import annotations

import pytest

from monitoring.explain.matrix_filter import MatrixFilter, read_matrix_filter

CRITERIA = ("-status", "-disk", "-disk", "-lowmemory")


@pytest.mark.parametrize(
    ("matrix_filter", "marks", "shown"),
    [
        (MatrixFilter(), "....", True),
        (MatrixFilter(name="alp"), "....", True),
        (MatrixFilter(name="AL*"), "....", True),
        (MatrixFilter(name="a?pha"), "....", True),
        (MatrixFilter(name="*[A]*"), "....", False),
        (MatrixFilter(name="bet"), "....", False),
        (MatrixFilter(show="chosen"), "....", True),
        (MatrixFilter(show="chosen"), "..t.", False),
        (MatrixFilter(show="skipped"), "..T.", True),
        (MatrixFilter(criterion="-disk"), "..T.", True),
        (MatrixFilter(criterion="-disk"), "P.t.", False),
        (MatrixFilter(criterion="-disk", how="any"), "P.t.", True),
        (MatrixFilter(criterion="-disk", how="alone"), "P.t.", False),
        (MatrixFilter(criterion="-disk", how="alone"), ".Tp.", True),
        (MatrixFilter(criterion="-disk", how="any"), "P..p", False),
        (MatrixFilter(criterion="-nothing", how="any"), "P..p", False),
    ],
)
def test_what_is_shown(matrix_filter: MatrixFilter, marks: str, shown: bool) -> None:
    assert matrix_filter.takes("ALPHA", marks, CRITERIA) is shown


def test_links_keep_the_filter_and_begin_at_the_first_page() -> None:
    matrix_filter = MatrixFilter(decision="7", name="A&B", criterion="-disk", how="any", page=3)
    assert matrix_filter.address() == "?decision=7&name=A%26B&criterion=-disk&how=any"
    assert matrix_filter.address(page=4) == "?decision=7&name=A%26B&criterion=-disk&how=any&page=4"
    assert matrix_filter.address(criterion="", name="") == "?decision=7"
    assert matrix_filter.address(queue="N/MCORE") == "?decision=7&name=A%26B&criterion=-disk&how=any&queue=N%2FMCORE"


@pytest.mark.parametrize("page", ["", "0", "-1", "x", "1e3", "999999", "²"])
def test_a_page_that_is_none_is_the_first(page: str) -> None:
    assert read_matrix_filter({"page": page, "how": "x", "show": "y"}, 1) == MatrixFilter(decision="1")
