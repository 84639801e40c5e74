"""Who submitted each task, for himself or for its owner; tasks of before get it from their history."""

from django.db import migrations, models

SUBMITTED = """
UPDATE workqueues_task t SET submitted_by = substr(c.who, 6) FROM workqueues_taskchange c
WHERE c.task_id = t.id AND c.epoch = 0 AND c.who LIKE 'user:%'
"""


class Migration(migrations.Migration):
    dependencies = [("workqueues", "0015_names_pairs_pauses")]

    operations = [
        migrations.AddField(
            "task",
            "submitted_by",
            models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="user who submitted it: the owner, or one with the role production for him",
                max_length=128,
            ),
        ),
        migrations.RunSQL(SUBMITTED, migrations.RunSQL.noop),
    ]
