"""When the removal of a copy began."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('workqueues', '0022_moving_files'),
    ]

    operations = [
        migrations.AddField(
            model_name='replica',
            name='removal_at',
            field=models.DateTimeField(blank=True, help_text='of one that is deleting: its removal began, and is tried again then; null: it did not', null=True),
        ),
    ]
