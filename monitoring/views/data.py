"""The page of one dataset and that of one file, with their JSON."""

from __future__ import annotations

from dataclasses import asdict

from django.http import Http404, HttpRequest, HttpResponseBase, JsonResponse

from monitoring.queries.datasets import MOST_FILES, dataset_details, find_dataset
from monitoring.queries.files import file_details, find_file
from monitoring.views.page import page, scope_of, show

READ = "dataset:read"
CHANGE = ("at", "old", "new", "who", "why")


@page(READ, ())
def dataset(request: HttpRequest, dataset_id: int, data: bool = False) -> HttpResponseBase:
    """What became of its files, where their copies are, and who else uses it."""
    scope = scope_of(request, READ)
    row = find_dataset(dataset_id, scope)
    if row is None:
        raise Http404(f"There is no dataset {dataset_id}, or it belongs to a VO that you cannot look into.")
    details = dataset_details(row, scope)
    if data:
        return JsonResponse(
            {
                **asdict(details.row),
                "files_by_state": details.by_state,
                "capped": details.capped,
                "copies": [copies._asdict() for copies in details.copies],
                "places": [place._asdict() for place in details.places],
                "others": [asdict(other) for other in details.others],
            }
        )
    return show(request, "dataset.html", "datasets", {"dataset": details.row, "details": details, "most_files": MOST_FILES})


@page(READ, ())
def file(request: HttpRequest, file_id: int, data: bool = False) -> HttpResponseBase:
    """Which jobs used it, where its copies are, and what else happened to it."""
    row = find_file(file_id, scope_of(request, READ))
    if row is None:
        raise Http404(f"There is no file {file_id}, or it belongs to a VO that you cannot look into.")
    details = file_details(row)
    if data:
        return JsonResponse(
            {
                **asdict(details.row),
                "copies": [copy._asdict() for copy in details.copies],
                "uses": [use._asdict() for use in details.uses],
                "history": [{name: getattr(change, name) for name in CHANGE} for change in details.changes],
            }
        )
    return show(request, "file.html", "datasets", {"file": details.row, "details": details})
