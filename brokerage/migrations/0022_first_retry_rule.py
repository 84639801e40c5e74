"""The retry rule that every broker begins with: what ran out of memory gets more, as it did before there were rules."""

from django.db import migrations

MEMORY = {"name": "out of memory", "component": "pilot", "error_code": "PAYLOAD_MEMORY", "action": "increase_memory"}


def begin(apps, schema_editor):
    """Add it, unless an operator has one of that name already."""
    rules = apps.get_model("brokerage", "RetryRule").objects
    rules.get_or_create(name=MEMORY["name"], defaults=MEMORY)


class Migration(migrations.Migration):

    dependencies = [
        ("brokerage", "0021_retry_rules"),
    ]

    operations = [
        migrations.RunPython(begin, migrations.RunPython.noop),
    ]
