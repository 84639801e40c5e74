"""How often in a row an agent failed on a task, and since when no agent works on it."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("workqueues", "0016_submitters_and_writers")]

    operations = [
        migrations.AddField(
            "task",
            "agent_faults",
            models.SmallIntegerField(db_default=0, default=0, help_text="how often in a row an agent failed on the task"),
        ),
        migrations.AddField(
            "task",
            "faulty_agent",
            models.CharField(blank=True, db_default="", default="", help_text="the agent that failed on it last", max_length=32),
        ),
        migrations.AddField(
            "task",
            "quarantined_at",
            models.DateTimeField(
                blank=True,
                null=True,
                help_text="since when no agent works on the task, as one failed on it too often; a retry lets it go on",
            ),
        ),
        migrations.AddIndex(
            "task",
            models.Index(
                condition=models.Q(quarantined_at__isnull=False), fields=["quarantined_at"], name="task_quarantined"
            ),
        ),
    ]
