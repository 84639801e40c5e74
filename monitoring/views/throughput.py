"""The page of what jobs did over time, with its JSON and CSV."""

from __future__ import annotations

from collections.abc import Sequence

from django.http import HttpRequest, HttpResponseBase

from broker_site.foundation.access.problems import problem_response
from broker_site.foundation.kernel import clock
from broker_site.foundation.kernel.verdict import Problem
from monitoring.queries.levels import counted_at
from monitoring.queries.series import BYS, MOST_SMALL, NAMELESS, USUAL_WINDOW, WINDOWS, flow_plots
from monitoring.queries.work_done import MOST_WAITS, Waits, WorkStep, waits_by, work_done
from monitoring.tables.exports import json_answer
from monitoring.views.export import export
from monitoring.views.page import page, scope_of, show

READ = "job:read"
KNOWN = ("window", "by")


@page(READ)
def throughput(request: HttpRequest) -> HttpResponseBase:
    """Started, finished and failed jobs of an hour, a day or a week, of all and by queue, share or VO; input files and events of
    those that finished, and how long those that began had waited.
    """
    faults: list[str] = []
    window = choice(request, "window", list(WINDOWS), faults, USUAL_WINDOW)
    by = choice(request, "by", list(BYS), faults)
    scope = scope_of(request, READ)
    whole, small, others, up_to = flow_plots(scope, window, by)
    waits = waits_by(scope, window, by, MOST_WAITS + 1)
    context = {
        "window": window,
        "windows": list(WINDOWS),
        "by": by,
        "by_title": BYS[by],
        "bys": BYS,
        "whole": whole,
        "small": small,
        "others": others,
        "most": MOST_SMALL,
        "work": work_done(scope, window).plots,
        "waits": waits[:MOST_WAITS],
        "more_waits": len(waits) > MOST_WAITS,
        "nameless": NAMELESS[by],
        "counted_at": up_to,
        "faults": faults,
    }
    return show(request, "throughput.html", "throughput", context, knows=KNOWN)


@page(READ, KNOWN)
def throughput_data(request: HttpRequest, format: str, of: str = "steps") -> HttpResponseBase:  # noqa: A002 - as in the address
    """What jobs did in the steps of a window; or, `of` waits, how long they waited by queue, share or VO."""
    wrong = [
        Problem(name, "one_of", f"there is: {', '.join(known)}")
        for name, known in (("window", WINDOWS), ("by", BYS))
        if request.GET.get(name) and request.GET[name] not in known
    ]
    if wrong:
        return problem_response(400, "Not valid", "Each fault is listed in errors.", wrong)
    window, by = request.GET.get("window") or USUAL_WINDOW, request.GET.get("by") or next(iter(BYS))
    scope = scope_of(request, READ)
    more = {"window": window, "as_of": clock.now()}
    if of == "waits":
        waits = waits_by(scope, window, by)
        if format == "csv":
            return export(request, Waits, waits, f"waits-by-{by}")
        return json_answer(waits, {**more, "by": by, "counted_at": counted_at()})
    found = work_done(scope, window)
    if format == "csv":
        return export(request, WorkStep, found.steps, "throughput")
    return json_answer(found.steps, {**more, "step_s": found.found.step_s, "counted_at": found.counted_at})


def choice(request: HttpRequest, name: str, known: Sequence[str], faults: list[str], usual: str = "") -> str:
    """One of the known values; the usual one, or the first, with a fault, for another."""
    usual = usual or known[0]
    text = request.GET.get(name) or usual
    if text in known:
        return text
    faults.append(f"“{text[:60]}” is no {name}, and was ignored; there is: {', '.join(known)}.")
    return usual
