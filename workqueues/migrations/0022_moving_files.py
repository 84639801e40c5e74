"""Files on their way are found without reading all of a dataset."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('workqueues', '0021_replicas_and_throttles'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='cataloguefile',
            index=models.Index(condition=models.Q(('moving', True)), fields=['dataset'], name='catalogue_file_moving'),
        ),
    ]
