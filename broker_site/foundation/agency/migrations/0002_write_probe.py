"""The row that `/readyz` writes (`roof.readiness`): it has no model, since nothing else reads it."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("agency", "0001_initial")]

    operations = [
        migrations.RunSQL(
            "CREATE TABLE agency_writeprobe (id smallint PRIMARY KEY, at timestamptz NOT NULL, filler bytea NOT NULL)",
            "DROP TABLE agency_writeprobe",
        )
    ]
