"""What own transfers load the links with, by hour, and places of copies that are removed."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('brokerage', '0019_transfer_mover'),
    ]

    operations = [
        migrations.CreateModel(
            name='LinkHour',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('source', models.CharField(max_length=60)),
                ('destination', models.CharField(max_length=60)),
                ('hour', models.DateTimeField(help_text='when the hour began')),
                ('files', models.IntegerField()),
                ('bytes', models.BigIntegerField()),
                ('busy_s', models.FloatField(help_text='seconds in which at least one of them was under way')),
            ],
        ),
        migrations.CreateModel(
            name='LinkLoad',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('source', models.CharField(help_text='site where files come from', max_length=60)),
                ('destination', models.CharField(help_text='site where they go', max_length=60)),
                ('activity', models.CharField(help_text='what the files are', max_length=32)),
                ('files', models.IntegerField(default=0, help_text='transfers that are not over')),
                ('bytes', models.BigIntegerField(default=0, help_text='their size')),
                ('mbps_1h', models.FloatField(blank=True, help_text='MB/s while something moved, in this hour and the one before', null=True)),
                ('mbps_1d', models.FloatField(blank=True, help_text='the same of a day', null=True)),
                ('mbps_1w', models.FloatField(blank=True, help_text='the same of a week', null=True)),
            ],
        ),
        migrations.CreateModel(
            name='TransferCount',
            fields=[
                ('id', models.SmallIntegerField(default=1, primary_key=True, serialize=False)),
                ('counted_at', models.DateTimeField(help_text='when open transfers were last counted')),
                ('ended_until', models.DateTimeField(help_text='transfers that ended until then are in the hours')),
            ],
        ),
        migrations.AddField(
            model_name='storageendpoint',
            name='root_free_gb',
            field=models.FloatField(blank=True, help_text='free space there when the server last looked; where none is published, it holds', null=True),
        ),
        migrations.AddIndex(
            model_name='jobinput',
            index=models.Index(condition=models.Q(('status', 'live'), models.Q(('tracked', False), ('event_range_id__isnull', False), _connector='OR')), fields=['file_id'], name='job_input_live_shared'),
        ),
        migrations.AddConstraint(
            model_name='linkhour',
            constraint=models.UniqueConstraint(fields=('hour', 'source', 'destination'), name='link_hour_once'),
        ),
        migrations.AddConstraint(
            model_name='linkload',
            constraint=models.UniqueConstraint(fields=('source', 'destination', 'activity'), name='link_load_once'),
        ),
        migrations.AddConstraint(
            model_name='transfercount',
            constraint=models.CheckConstraint(condition=models.Q(('id', 1)), name='transfer_count_one_row'),
        ),
    ]
