"""By how many finished jobs the needs of a task were measured last; the causes for which tasks are throttled, told anew."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("workqueues", "0026_files_to_merge")]

    operations = [
        migrations.AddField(
            model_name="task",
            name="n_measured",
            field=models.IntegerField(db_default=0, default=0, help_text="finished jobs by which its needs were measured last"),
        ),
        migrations.AlterField(
            model_name="taskthrottle",
            name="cause",
            field=models.CharField(help_text="attempts, disk_transfers, tape_staging, user_cap, failing, busy_sites", max_length=24),
        ),
    ]
