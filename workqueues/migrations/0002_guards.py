"""The guard triggers of the state machines, the settings of busy tables, and the work queue that takes what no other takes."""

from django.db import migrations

from workqueues.states import GUARDED

BUSY = "autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_limit = 2000"


def add_default_queue(apps, schema_editor):
    apps.get_model("workqueues", "WorkQueue").objects.create(queue_name="default", queue_type="", vo="*", queue_order=1000)


class Migration(migrations.Migration):
    dependencies = [("workqueues", "0001_initial")]

    operations = [
        *(migrations.RunSQL(m.guard_sql(table, only), m.unguard_sql(table)) for m, table, only in GUARDED),
        migrations.RunSQL(
            f"ALTER TABLE workqueues_file SET (fillfactor = 85, {BUSY})",
            "ALTER TABLE workqueues_file RESET (fillfactor, autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold, "
            "autovacuum_vacuum_cost_limit)",
        ),
        migrations.RunPython(add_default_queue, migrations.RunPython.noop),
    ]
