"""The page of what jobs did over time."""

from __future__ import annotations

from collections.abc import Sequence

from django.http import HttpRequest, HttpResponseBase

from monitoring.queries.series import BYS, MOST_SMALL, USUAL_WINDOW, WINDOWS, flow_plots
from monitoring.views.page import page, scope_of, show


@page("job:read")
def throughput(request: HttpRequest) -> HttpResponseBase:
    """Started, finished and failed jobs of an hour, a day or a week, of all and by queue or share."""
    faults: list[str] = []
    window = choice(request, "window", list(WINDOWS), faults, USUAL_WINDOW)
    by = choice(request, "by", list(BYS), faults)
    whole, small, others, counted_at = flow_plots(scope_of(request, "job:read"), window, by)
    context = {
        "window": window,
        "windows": list(WINDOWS),
        "by": by,
        "bys": BYS,
        "whole": whole,
        "small": small,
        "others": others,
        "most": MOST_SMALL,
        "counted_at": counted_at,
        "faults": faults,
    }
    return show(request, "throughput.html", "throughput", context, knows=("window", "by"))


def choice(request: HttpRequest, name: str, known: Sequence[str], faults: list[str], usual: str = "") -> str:
    """One of the known values; the usual one, or the first, with a fault, for another."""
    usual = usual or known[0]
    text = request.GET.get(name) or usual
    if text in known:
        return text
    faults.append(f"“{text[:60]}” is no {name}, and was ignored; there is: {', '.join(known)}.")
    return usual
