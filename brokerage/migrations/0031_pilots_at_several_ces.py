from django.contrib.postgres.fields import ArrayField
from django.db import migrations, models


class Migration(migrations.Migration):
    """A pilot may name several computing elements; and notes of when jobs open that have ended go."""

    dependencies = [("brokerage", "0030_last_asks")]

    operations = [
        migrations.AddField(
            "pilotce",
            "ces",
            ArrayField(models.CharField(max_length=255), default=list, size=None, verbose_name="computing elements"),
        ),
        migrations.RunSQL(
            "UPDATE brokerage_pilotce SET ces = ARRAY[ce]",
            "UPDATE brokerage_pilotce SET ce = coalesce(ces[1], '')",
        ),
        migrations.RemoveField("pilotce", "ce"),
        migrations.RunSQL(
            """
            DELETE FROM brokerage_jobopening o
            WHERE NOT EXISTS (SELECT FROM brokerage_job j WHERE j.id = o.job_id AND j.ended_at IS NULL)
            """,
            migrations.RunSQL.noop,
        ),
    ]
