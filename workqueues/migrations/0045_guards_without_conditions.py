from django.db import migrations

from workqueues.states import GUARDED, elements


class Migration(migrations.Migration):
    """A guard that rules all rows of its table looks at the states itself: a condition of the trigger is read anew each time."""

    dependencies = [("workqueues", "0044_child_replaced_at")]

    operations = [
        migrations.RunSQL(machine.guard_sql(table, only), migrations.RunSQL.noop)
        for machine, table, only in (*GUARDED, *elements.GUARDED)
    ]
