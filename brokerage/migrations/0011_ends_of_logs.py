"""The end of the log of a job that failed, where the log could not be stored. A constant default: no row is written."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("brokerage", "0010_storage_roots")]

    operations = [
        migrations.AddField(
            "jobresult",
            "log_end",
            models.TextField(
                blank=True,
                db_default="",
                default="",
                help_text="end of the log of a job that failed, where that could not be stored",
            ),
        ),
        migrations.AlterField(
            "jobresult",
            "error_message",
            models.CharField(db_default="", default="", help_text="the line that tells first", max_length=500),
        ),
    ]
