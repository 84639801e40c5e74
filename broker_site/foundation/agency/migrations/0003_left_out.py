"""What an agent left out in its last run. A constant default: no row is written."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("agency", "0002_write_probe")]

    operations = [
        migrations.AddField(
            "agent",
            "left_out",
            models.TextField(
                blank=True, db_default="", default="", help_text="what the last good run could not work on, and why"
            ),
        ),
    ]
