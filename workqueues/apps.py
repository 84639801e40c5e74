"""The Django app `workqueues`."""

from django.apps import AppConfig


class WorkqueuesConfig(AppConfig):
    """Demand: what has to be done."""

    name = "workqueues"
    verbose_name = "Work queues"

    def ready(self) -> None:
        """Declare who may command tasks, and what steers shares and work queues; let `manage.py check --database default` look at
        them.
        """
        from django.core.checks import Tags, register

        from broker_site.foundation.access.permissions import PERMISSIONS, Permission
        from broker_site.foundation.gdpconfig.line_kinds import declare_kind
        from workqueues.ledger.share_lines import ShareLines
        from workqueues.ledger.work_queue_lines import WorkQueueLines
        from workqueues.queries.place_faults import check_places
        from workqueues.rules.task.changes import CHANGES
        from workqueues.rules.task.commands import COMMANDS

        everything = {option.name: True for command in COMMANDS.values() for option in command.options}
        of_commands = [right for command in COMMANDS.values() for right in command.rights_for(everything)]
        rights = [*of_commands, *(row.right for row in CHANGES.values())]
        for name, right in {right.permission: right for right in rights}.items():
            PERMISSIONS.add(name, Permission(name, frozenset({"user"}), right.roles, audited=True, superuser=True, own=False))
        declare_kind(ShareLines.kind, ShareLines())
        declare_kind(WorkQueueLines.kind, WorkQueueLines())
        register(check_places, Tags.database)
