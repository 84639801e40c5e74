"""How copies stand, files that are still on their way to their dataset, and the causes for which tasks are throttled."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('workqueues', '0020_stranded_jobs'),
    ]

    operations = [
        migrations.CreateModel(
            name='TaskThrottle',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('cause', models.CharField(help_text='attempts, disk_transfers, tape_staging, failing, operator', max_length=24)),
                ('since', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('until', models.DateTimeField(blank=True, help_text='when it ends by itself; null: when what caused it is over', null=True)),
                ('why', models.CharField(blank=True, db_default='', default='', help_text='the cause with its numbers', max_length=255)),
            ],
        ),
        migrations.AddField(
            model_name='cataloguefile',
            name='moving',
            field=models.BooleanField(db_default=False, default=False, help_text='on its way to where its dataset is collected: not yet a file of it for readers'),
        ),
        migrations.AddField(
            model_name='dataset',
            name='collected_at',
            field=models.CharField(blank=True, db_default='', default='', help_text='storage endpoint to which outputs of jobs are brought while the task runs; empty: they stay', max_length=60),
        ),
        migrations.AddField(
            model_name='replica',
            name='keep_until',
            field=models.DateTimeField(blank=True, help_text='when a cache copy may go whatever space is free; null: not', null=True),
        ),
        migrations.AddField(
            model_name='replica',
            name='kind',
            field=models.CharField(choices=[('origin', 'origin'), ('cache', 'cache')], db_default='origin', default='origin', help_text='origin: kept; cache: brought for jobs, removed when the endpoint needs space and nobody needs it', max_length=8),
        ),
        migrations.AddField(
            model_name='replica',
            name='last_used',
            field=models.DateTimeField(blank=True, help_text='when a job last asked for a cache copy', null=True),
        ),
        migrations.AddField(
            model_name='replica',
            name='state',
            field=models.CharField(choices=[('available', 'available'), ('deleting', 'deleting'), ('bad', 'bad')], db_default='available', default='available', help_text='available; deleting: about to be removed; bad: damaged, not read', max_length=12),
        ),
        migrations.AddIndex(
            model_name='replica',
            index=models.Index(condition=models.Q(('kind', 'cache')), fields=['storage', 'last_used'], name='replica_cached'),
        ),
        migrations.AddIndex(
            model_name='replica',
            index=models.Index(condition=models.Q(('keep_until__isnull', False)), fields=['keep_until'], name='replica_kept_until'),
        ),
        migrations.AddIndex(
            model_name='replica',
            index=models.Index(condition=models.Q(('state', 'available'), _negated=True), fields=['storage'], name='replica_not_available'),
        ),
        migrations.AddField(
            model_name='taskthrottle',
            name='task',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='throttles', to='workqueues.task'),
        ),
        migrations.AddIndex(
            model_name='taskthrottle',
            index=models.Index(fields=['cause', 'until'], name='task_throttle_by_cause'),
        ),
        migrations.AddConstraint(
            model_name='taskthrottle',
            constraint=models.UniqueConstraint(fields=('task', 'cause'), name='task_throttle_once'),
        ),
    ]
