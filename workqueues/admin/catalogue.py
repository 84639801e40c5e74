"""The local catalogue, to read: jobs register what they make, nobody edits what exists."""

from __future__ import annotations

from django.contrib import admin

from broker_site.foundation.adminpages import ReadOnlyAdmin, VoFilter
from workqueues.models import CatalogueDataset, CatalogueFile, Replica


@admin.register(CatalogueDataset)
class CatalogueDatasetAdmin(ReadOnlyAdmin):
    list_display = ("id", "name", "vo", "owner", "state", "created_at")
    list_display_links = ("id", "name")
    list_filter = (VoFilter,)
    search_fields = ("=name",)
    search_help_text = "Number or whole name."
    number_fields = ("id",)
    related = (("files", "workqueues_cataloguefile", "dataset_id"),)


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
