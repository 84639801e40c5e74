"""Boundaries and lumi blocks of files in the catalogue; one concrete dataset for each template and site."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('workqueues', '0008_event_ranges_in_jobs'),
    ]

    operations = [
        migrations.AddField(
            model_name='cataloguefile',
            name='boundary_id',
            field=models.BigIntegerField(blank=True, help_text='files of different boundaries do not share a job', null=True),
        ),
        migrations.AddField(
            model_name='cataloguefile',
            name='lumi_block_nr',
            field=models.IntegerField(blank=True, help_text='lumi block of its events', null=True),
        ),
        migrations.AddConstraint(
            model_name='dataset',
            constraint=models.UniqueConstraint(
                condition=models.Q(('template_id__isnull', False)), fields=('template_id', 'site'), name='dataset_concrete_once'
            ),
        ),
    ]
