from django.db import migrations, models

from brokerage.states import GUARDED


class Migration(migrations.Migration):
    """The jobs that hold slots at a site are counted without those of others; a guard costs a lease no condition that is read anew."""

    dependencies = [("brokerage", "0051_where_outputs_go")]

    operations = [
        migrations.AddIndex(
            "job",
            models.Index(
                condition=models.Q(("lease_holder__isnull", False)), fields=["computing_queue", "task_id"], name="job_held"
            ),
        ),
        *(migrations.RunSQL(machine.guard_sql(table, only), migrations.RunSQL.noop) for machine, table, only in GUARDED),
    ]
