"""Who asked for the kill of a job that a pilot holds, and why, is known until the pilot has ended it."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('brokerage', '0022_first_retry_rule'),
    ]

    operations = [
        migrations.AddField(
            model_name='job',
            name='kill_why',
            field=models.CharField(blank=True, db_default='', default='', help_text="why, and by whom, a kill was asked of the job's pilot", max_length=255),
        ),
    ]
