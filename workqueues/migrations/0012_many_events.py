"""Numbers of events beyond 2^31 in a task. The table of files is written anew, once: about a minute for ten million of them."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("workqueues", "0011_true_ends")]

    operations = [
        migrations.AlterField(
            "file",
            "first_event",
            models.BigIntegerField(blank=True, help_text="event number of the first processed event, or a seed", null=True),
        ),
    ]
