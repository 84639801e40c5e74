from django.contrib.postgres.fields import ArrayField
from django.db import migrations, models


OUTCOMES = ("job", "no_job", "no_fit", "limits", "taken", "policy", "queue", "pilot_full")
CHOICES = [(outcome, outcome) for outcome in OUTCOMES]


class Migration(migrations.Migration):
    """A pilot may name several computing elements; asks end for one more reason; notes of when jobs open that have ended go."""

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
        migrations.AlterField("askhour", "outcome", models.CharField(choices=CHOICES, max_length=12)),
        migrations.AlterField(
            "queueask",
            "outcome",
            models.CharField(choices=CHOICES, help_text="job, or why there was nothing", max_length=12),
        ),
        migrations.RunSQL(
            """
            DELETE FROM brokerage_jobopening o
            WHERE NOT EXISTS (SELECT FROM brokerage_job j WHERE j.id = o.job_id AND j.ended_at IS NULL)
            """,
            migrations.RunSQL.noop,
        ),
    ]
