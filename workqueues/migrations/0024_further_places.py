"""Outputs may be brought to several places."""

import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('workqueues', '0023_removals'),
    ]

    operations = [
        migrations.AddField(
            model_name='dataset',
            name='also_at',
            field=django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=60), blank=True, db_default=[], default=list, help_text='further storage endpoints to which they are brought: those of a token that names several', size=None),
        ),
    ]
