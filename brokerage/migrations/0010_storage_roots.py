"""How the root of a storage endpoint is marked, and how it was when it was last looked at. Constant defaults: no row is written."""

from django.db import migrations, models

STATES = ("unmarked", "up", "down", "read only", "full")


class Migration(migrations.Migration):
    dependencies = [("brokerage", "0009_job_kind")]

    operations = [
        migrations.AddField(
            "storageendpoint",
            "mark",
            models.CharField(
                blank=True, db_default="", default="", help_text="how its root is marked; empty: it never was", max_length=1200
            ),
        ),
        migrations.AddField(
            "storageendpoint",
            "root_state",
            models.CharField(
                choices=[(state, state) for state in STATES],
                db_default="unmarked",
                default="unmarked",
                help_text="how its root was when the server last looked",
                max_length=16,
            ),
        ),
        migrations.AddField(
            "storageendpoint",
            "root_fault",
            models.CharField(
                blank=True, db_default="", default="", help_text="what is wrong with its root, in words", max_length=510
            ),
        ),
        migrations.AddField(
            "storageendpoint",
            "root_since",
            models.DateTimeField(blank=True, help_text="since when its root is so", null=True),
        ),
        migrations.AddField(
            "storageendpoint",
            "root_gb",
            models.FloatField(blank=True, help_text="size of the file system of its root, GB", null=True),
        ),
    ]
