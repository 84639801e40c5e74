"""A task that is run again before its preprocessing step is over begins with that step."""

from django.db import migrations

from workqueues.states import GUARDED, TASK


class Migration(migrations.Migration):
    dependencies = [("workqueues", "0030_outputs_of_exhausted_tasks")]

    operations = [
        migrations.RunSQL(machine.guard_sql(table, only), migrations.RunSQL.noop)
        for machine, table, only in GUARDED
        if machine is TASK
    ]
