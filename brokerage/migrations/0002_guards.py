"""The guard trigger of the job machine and the settings of the tables that every job touches (performance facts 1c, 1e)."""

from django.db import migrations

from brokerage.states import JOB

BUSY = "autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_limit = 2000"
RESET = "RESET (fillfactor, autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold, autovacuum_vacuum_cost_limit)"


class Migration(migrations.Migration):
    dependencies = [("brokerage", "0001_initial")]

    operations = [
        migrations.RunSQL(JOB.guard_sql("brokerage_job"), JOB.unguard_sql("brokerage_job")),
        *(
            migrations.RunSQL(f"ALTER TABLE {table} SET (fillfactor = {fill}, {BUSY})", f"ALTER TABLE {table} {RESET}")
            for table, fill in (("brokerage_job", 75), ("brokerage_jobinput", 85))
        ),
    ]
