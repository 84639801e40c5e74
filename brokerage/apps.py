"""The Django app `brokerage`."""

from django.apps import AppConfig


class BrokerageConfig(AppConfig):
    """Supply and match: where work runs."""

    name = "brokerage"
    label = "brokerage"
    verbose_name = "Brokerage"

    def ready(self) -> None:
        """Declare the policies, ours and those of plugins, and tell those below where storages and queues are."""
        from django.core.checks import Tags, register

        from broker_site.foundation.access.credentials import check_places_with
        from broker_site.foundation.gdpconfig.line_kinds import declare_kind
        from broker_site.foundation.rest.filtering import add_filter
        from brokerage.api.filtering import task_filters
        from brokerage.ledger.site_lines import SiteLines
        from brokerage.plugins import check_named, check_plugins, load_plugins
        from brokerage.queries.pilots import place_faults, storage_roots
        from brokerage.queries.place_names import destination_fault, no_site_faults, nucleus_fault, site_faults
        from brokerage.rules.dispatch.limited_sites import know_sites_with
        from brokerage.rules.transfers.backend_choice import know_backends_with
        from brokerage.transfers.choice import backends
        from workqueues.api.filtering import TaskFilter
        from workqueues.catalogue import locate_storages_with
        from workqueues.queries.place_wishes import check_destinations_with, check_nucleus_with, check_sites_with

        declare_kind(SiteLines.kind, SiteLines())
        load_plugins()
        register(check_plugins)
        register(check_named, Tags.database)
        locate_storages_with(storage_roots)
        check_places_with(place_faults)
        check_nucleus_with(nucleus_fault)
        check_destinations_with(destination_fault)
        check_sites_with(site_faults)
        know_backends_with(backends)
        know_sites_with(no_site_faults)
        for name, added in task_filters().items():
            add_filter(TaskFilter, name, added)
