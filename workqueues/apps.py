"""The Django app `workqueues`."""

from django.apps import AppConfig


class WorkqueuesConfig(AppConfig):
    """Demand: what has to be done."""

    name = "workqueues"
    label = "workqueues"
    verbose_name = "Work queues"

    def ready(self) -> None:
        """Let `manage.py check --database default` look at work queues and shares."""
        from django.core.checks import Tags, register

        from workqueues.queries.place_faults import check_places

        register(check_places, Tags.database)
