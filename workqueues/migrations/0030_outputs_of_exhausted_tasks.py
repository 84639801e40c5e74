"""A task that was exhausted once it was prepared, and is run again, writes to its outputs as before."""

from django.db import migrations

from workqueues.states import GUARDED, OUTPUT_DATASET


class Migration(migrations.Migration):
    dependencies = [("workqueues", "0029_names_of_failed_outputs")]

    operations = [
        migrations.RunSQL(machine.guard_sql(table, only), migrations.RunSQL.noop)
        for machine, table, only in GUARDED
        if machine is OUTPUT_DATASET
    ]
