"""Jobs with a long command line store their own values only; those of before keep their whole line."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("brokerage", "0012_reports_and_leases"),
    ]

    operations = [
        migrations.AddField(
            model_name="jobspec",
            name="job_values",
            field=models.JSONField(
                blank=True,
                help_text="what the job puts into the placeholders of the task's job parameters, in order, where their text is long",
                null=True,
            ),
        ),
        migrations.AlterField(
            model_name="jobspec",
            name="job_parameters",
            field=models.TextField(
                db_default="",
                default="",
                help_text="the payload's command line; empty where the job has values for that of the task",
            ),
        ),
    ]
