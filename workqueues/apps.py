"""The Django app `workqueues`."""

from django.apps import AppConfig


class WorkqueuesConfig(AppConfig):
    """Demand: what has to be done."""

    name = "workqueues"
    label = "workqueues"
    verbose_name = "Work queues"
