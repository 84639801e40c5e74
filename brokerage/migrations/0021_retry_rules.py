"""Retry rules, and what followed from them for each job."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('brokerage', '0020_caches_and_link_loads'),
        ('workqueues', '0026_files_to_merge'),
    ]

    operations = [
        migrations.AddField(
            model_name='jobresult',
            name='retry_actions',
            field=models.JSONField(blank=True, help_text='what followed from retry rules: rule, action, and what was done; null: nothing', null=True),
        ),
        migrations.CreateModel(
            name='RetryRule',
            fields=[
                ('id', models.AutoField(primary_key=True, serialize=False)),
                ('name', models.CharField(help_text='as it is told on the pages of jobs', max_length=60, unique=True)),
                ('active', models.BooleanField(db_default=True, default=True, help_text='off: where it would hold is told, and nothing is done')),
                ('vo', models.CharField(blank=True, db_default='', default='', help_text='virtual organization; empty: any', max_length=32)),
                ('component', models.CharField(blank=True, choices=[('pilot', 'the pilot: its error code'), ('payload', 'the payload: its exit code'), ('broker', 'the broker: its judgement')], db_default='', default='', help_text='who says what went wrong; empty: any', max_length=16)),
                ('error_code', models.CharField(blank=True, db_default='', default='', help_text='error code, of the payload its exit code; empty: any', max_length=40)),
                ('pattern', models.CharField(blank=True, db_default='', default='', help_text='regular expression, matched from the beginning of the error message; empty: any', max_length=256)),
                ('architecture', models.CharField(blank=True, db_default='', default='', help_text='architecture of the task, the whole text; empty: any', max_length=256)),
                ('release', models.CharField(blank=True, db_default='', default='', help_text='software of the task (transUses), the whole text; empty: any', max_length=192)),
                ('computing_queue', models.CharField(blank=True, db_default='', default='', help_text='computing queue where it ran; empty: any', max_length=60)),
                ('expires_at', models.DateTimeField(blank=True, help_text='until when it holds; empty: without end', null=True)),
                ('action', models.CharField(choices=[('no_retry', 'no retry'), ('limit_retry', 'limited tries'), ('increase_memory', 'more memory'), ('reduce_input_per_job', 'less input'), ('not_counted', 'counts as no failure')], help_text='what follows', max_length=32)),
                ('max_attempt', models.SmallIntegerField(blank=True, help_text='tries of a file, those before included; of limited tries only', null=True)),
                ('work_queue', models.ForeignKey(blank=True, help_text='empty: any', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='workqueues.workqueue')),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('action__in', ['no_retry', 'limit_retry', 'increase_memory', 'reduce_input_per_job', 'not_counted'])), name='retry_rule_action_known'), models.CheckConstraint(condition=models.Q(models.Q(('action', 'limit_retry'), ('max_attempt__gte', 1)), models.Q(models.Q(('action', 'limit_retry'), _negated=True), ('max_attempt__isnull', True)), _connector='OR'), name='retry_rule_limit')],
            },
        ),
    ]
