"""The local catalogue, to read: jobs register what they make, nobody edits what exists."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.safestring import SafeString

from broker_site.foundation.adminpages import ReadOnlyAdmin, lists
from workqueues.models import CatalogueDataset, CatalogueFile, Replica


@admin.register(CatalogueDataset)
class CatalogueDatasetAdmin(ReadOnlyAdmin):
    list_display = ("id", "name", "state", "created_at")
    list_display_links = ("id", "name")
    search_fields = ("=name",)
    search_help_text = "Number or whole name."
    number_fields = ("id",)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        return ["belonging", *super().get_fields(request, obj)]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return ("belonging",)

    @admin.display(description="lists")
    def belonging(self, dataset: CatalogueDataset) -> SafeString:
        return lists([("files", "workqueues_cataloguefile", {"dataset_id": dataset.id})])


@admin.register(CatalogueFile)
class CatalogueFileAdmin(ReadOnlyAdmin):
    list_display = ("id", "lfn", "dataset", "fsize", "checksum", "n_events", "boundary_id", "lumi_block_nr", "created_at")
    list_display_links = ("id", "lfn")
    list_select_related = ("dataset",)
    search_fields = ("=lfn",)
    search_help_text = "Number or whole name."
    number_fields = ("id",)


@admin.register(Replica)
class ReplicaAdmin(ReadOnlyAdmin):
    list_display = ("id", "file", "storage", "path")
    list_select_related = ("file",)
    search_fields = ("=file__lfn", "=storage")
    search_help_text = "Name of a file or a storage endpoint, or number of the file."
    number_fields = ("file_id",)
