"""Files on their way are found without reading all of a dataset; transient datasets have a time at which they go."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('workqueues', '0021_replicas_and_throttles'),
    ]

    operations = [
        # It had the name of the nucleus, which the task has too; destinations of datasets were not supported before.
        migrations.RunSQL("UPDATE workqueues_dataset SET destination = '' WHERE destination <> ''", migrations.RunSQL.noop),
        migrations.AddField(
            model_name='cataloguedataset',
            name='expires_at',
            field=models.DateTimeField(blank=True, help_text='when its files are removed, as it is transient; null: it is kept', null=True),
        ),
        migrations.AlterField(
            model_name='cataloguedataset',
            name='state',
            field=models.CharField(default='open', help_text='open: files may come; closed: complete; expired: it was transient', max_length=20),
        ),
        migrations.AddIndex(
            model_name='cataloguedataset',
            index=models.Index(condition=models.Q(('expires_at__isnull', False)), fields=['expires_at'], name='catalogue_expires'),
        ),
        migrations.AddIndex(
            model_name='cataloguefile',
            index=models.Index(condition=models.Q(('moving', True)), fields=['dataset'], name='catalogue_file_moving'),
        ),
    ]
