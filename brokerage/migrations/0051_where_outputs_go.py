from django.db import migrations, models

TO_JOBS = """
UPDATE brokerage_job j SET storage = s.storage FROM brokerage_jobspec s WHERE s.job_id = j.id AND s.storage <> ''
"""
TO_DESCRIPTIONS = """
UPDATE brokerage_jobspec s SET storage = j.storage FROM brokerage_job j WHERE j.id = s.job_id AND j.storage <> ''
"""


class Migration(migrations.Migration):
    """Where the outputs of a job go stands in the row that has its computing queue: a lease of an open job sets both at once."""

    dependencies = [("brokerage", "0050_requirement_place_own_datasets")]

    operations = [
        migrations.AddField(
            "job",
            "storage",
            models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="storage endpoint its outputs go to; empty while it is open",
                max_length=60,
            ),
        ),
        migrations.RunSQL(TO_JOBS, TO_DESCRIPTIONS),
        migrations.RemoveField("jobspec", "storage"),
    ]
