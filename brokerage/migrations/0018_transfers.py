"""Transfers of files, who wishes them, links, copies under way; all columns of older tables are empty or constant, so that no row is
written.
"""

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
import uuid
from django.db import migrations, models

from brokerage.states import TRANSFER

BUSY = "autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_limit = 2000"
RESET = "RESET (fillfactor, autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold, autovacuum_vacuum_cost_limit)"


class Migration(migrations.Migration):

    dependencies = [
        ('brokerage', '0017_idle_until'),
        ('workqueues', '0021_replicas_and_throttles'),
    ]

    operations = [
        migrations.CreateModel(
            name='ReplicaChange',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('file_id', models.BigIntegerField(db_index=True, help_text='file of the catalogue')),
                ('storage', models.CharField(max_length=60)),
                ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('what', models.CharField(help_text='made, deleting, removed, bad', max_length=12)),
                ('who', models.CharField(max_length=128)),
                ('why', models.CharField(db_default='', default='', max_length=255)),
            ],
        ),
        migrations.CreateModel(
            name='TransferChange',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('transfer_id', models.BigIntegerField(db_index=True)),
                ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('old', models.CharField(help_text="state before; '-' for an insertion", max_length=16)),
                ('new', models.CharField(help_text='state after', max_length=16)),
                ('attempt', models.SmallIntegerField(db_default=0, default=0)),
                ('who', models.CharField(help_text='agent or user', max_length=128)),
                ('why', models.CharField(db_default='', default='', max_length=255)),
            ],
        ),
        migrations.AddField(
            model_name='jobspec',
            name='reads_wan',
            field=models.BooleanField(db_default=False, default=False, help_text='input may be read from other sites, over the network'),
        ),
        migrations.AddField(
            model_name='storageendpoint',
            name='key_number',
            field=models.IntegerField(db_default=1, default=1, help_text='number of the key with which its addresses are signed; a new one makes old ones void'),
        ),
        migrations.AddField(
            model_name='storageendpoint',
            name='url',
            field=models.CharField(blank=True, default='', help_text='Address of its storage server, http(s)://host:port; for pilots and movers that do not reach the directory.', max_length=400),
        ),
        migrations.CreateModel(
            name='Transfer',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('destination', models.CharField(help_text='storage endpoint to which the file is brought', max_length=60)),
                ('destination_site', models.CharField(max_length=60)),
                ('source', models.CharField(blank=True, db_default='', default='', help_text='storage endpoint from which; empty: none is known', max_length=60)),
                ('source_site', models.CharField(blank=True, db_default='', default='', max_length=60)),
                ('status', models.CharField(choices=[('queued', 'queued'), ('submitting', 'submitting'), ('submitted', 'submitted'), ('done', 'done'), ('failed', 'failed'), ('cancelled', 'cancelled')], max_length=16)),
                ('status_since', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('reason', models.CharField(blank=True, choices=[('no_source', 'no_source'), ('quota', 'quota'), ('refused', 'refused'), ('expired', 'expired'), ('no_wish', 'no_wish'), ('operator', 'operator'), ('source_missing', 'source_missing'), ('source_corrupt', 'source_corrupt'), ('checksum', 'checksum'), ('dst_full', 'dst_full'), ('dst_down', 'dst_down'), ('src_down', 'src_down'), ('link_blocked', 'link_blocked'), ('link_full', 'link_full'), ('auth', 'auth'), ('timeout', 'timeout'), ('unknown', 'unknown'), ('seen', 'seen')], db_default='', default='', help_text='why the last attempt failed, or the transfer ended', max_length=20)),
                ('message', models.CharField(blank=True, db_default='', default='', help_text='the same in words', max_length=500)),
                ('activity', models.CharField(choices=[('Production Input', 'Production Input'), ('Analysis Input', 'Analysis Input'), ('Production Output', 'Production Output'), ('Analysis Output', 'Analysis Output'), ('Express', 'Express'), ('Staging', 'Staging'), ('Recovery', 'Recovery'), ('Datasets', 'Datasets')], max_length=32)),
                ('express', models.BooleanField(db_default=False, default=False, help_text='goes before all others')),
                ('priority', models.IntegerField(db_default=0, default=0, help_text='the highest of those who wish it')),
                ('vo', models.CharField(db_default='', default='', max_length=32)),
                ('share', models.CharField(blank=True, db_default='', default='', help_text='share of who wished it first', max_length=64)),
                ('tape', models.BooleanField(db_default=False, default=False, help_text='its source has to be staged from tape')),
                ('bytes', models.BigIntegerField()),
                ('checksum', models.CharField(help_text='adler32, 8 hex digits', max_length=36)),
                ('attempt', models.SmallIntegerField(db_default=0, default=0, help_text='attempts begun so far')),
                ('next_at', models.DateTimeField(blank=True, help_text='not tried again before; null: now', null=True)),
                ('failed_sources', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=60), blank=True, db_default=[], default=list, help_text='endpoints from which an attempt failed, once for each', size=None)),
                ('backend', models.CharField(blank=True, db_default='', default='', help_text='what moves it', max_length=16)),
                ('key', models.UUIDField(blank=True, help_text='key of the attempt with the backend: the same asks for the same copy', null=True)),
                ('claimed_until', models.DateTimeField(blank=True, help_text='when the claim of who submits it ends', null=True)),
                ('looked_at', models.DateTimeField(blank=True, help_text='when the catalogue was last asked whether the file is there', null=True)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('ended_at', models.DateTimeField(blank=True, help_text='set exactly in a final state', null=True)),
                ('file', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='transfers', to='workqueues.cataloguefile')),
            ],
        ),
        migrations.CreateModel(
            name='TransferLink',
            fields=[
                ('id', models.AutoField(primary_key=True, serialize=False)),
                ('max_active', models.IntegerField(blank=True, help_text='transfers at a time; null: as configured', null=True)),
                ('mb_per_s', models.FloatField(blank=True, help_text='MB/s of all its copies together; null: no limit', null=True)),
                ('blocked_until', models.DateTimeField(blank=True, help_text='no transfer begins before; null: it is open', null=True)),
                ('blocked_why', models.CharField(blank=True, db_default='', default='', max_length=255)),
                ('destination', models.ForeignKey(help_text='site where they go', on_delete=django.db.models.deletion.CASCADE, related_name='+', to='brokerage.site')),
                ('source', models.ForeignKey(help_text='site where files come from', on_delete=django.db.models.deletion.CASCADE, related_name='+', to='brokerage.site')),
            ],
        ),
        migrations.CreateModel(
            name='TransferWish',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('role', models.CharField(choices=[('input', 'input'), ('stage', 'stage'), ('output', 'output'), ('log', 'log'), ('dataset', 'dataset'), ('recovery', 'recovery')], max_length=8)),
                ('job_id', models.BigIntegerField(blank=True, null=True)),
                ('task_id', models.BigIntegerField(blank=True, null=True)),
                ('dataset_id', models.BigIntegerField(blank=True, help_text='dataset of the task whose file it is', null=True)),
                ('vo', models.CharField(db_default='', default='', max_length=32)),
                ('owner', models.CharField(db_default='', default='', help_text='user, or group:NAME, for whom it is', max_length=128)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('closed_at', models.DateTimeField(blank=True, help_text='when it was met, or nobody wanted it any more', null=True)),
                ('transfer', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='wishes', to='brokerage.transfer')),
            ],
            options={'verbose_name_plural': 'transfer wishes'},
        ),
        migrations.CreateModel(
            name='LocalCopy',
            fields=[
                ('key', models.UUIDField(default=uuid.uuid4, primary_key=True, serialize=False)),
                ('source_path', models.CharField(help_text='path below the endpoint', max_length=1024)),
                ('destination_path', models.CharField(help_text='path below the endpoint', max_length=1024)),
                ('bytes', models.BigIntegerField()),
                ('checksum', models.CharField(max_length=36)),
                ('mb_per_s', models.FloatField(blank=True, help_text='limit of its link, of all copies of the link together', null=True)),
                ('urgency', models.IntegerField(db_default=0, default=0, help_text='the higher the sooner')),
                ('status', models.CharField(db_default='waiting', default='waiting', help_text='waiting, copying, done, failed', max_length=10)),
                ('cancelled', models.BooleanField(db_default=False, default=False, help_text='it is to be given up')),
                ('reason', models.CharField(blank=True, db_default='', default='', max_length=20)),
                ('message', models.CharField(blank=True, db_default='', default='', max_length=500)),
                ('copied', models.BigIntegerField(db_default=0, default=0, help_text='bytes so far, as last told')),
                ('mover', models.CharField(blank=True, db_default='', default='', help_text='the process that copies it', max_length=64)),
                ('claimed_until', models.DateTimeField(blank=True, help_text="when the mover's claim ends", null=True)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('ended_at', models.DateTimeField(blank=True, null=True)),
                ('destination', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='brokerage.storageendpoint')),
                ('source', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='brokerage.storageendpoint')),
            ],
            options={
                'verbose_name_plural': 'local copies',
                'indexes': [models.Index(models.OrderBy(models.F('urgency'), descending=True), models.F('created_at'), condition=models.Q(('status', 'waiting')), name='local_copy_waiting'), models.Index(condition=models.Q(('status', 'copying')), fields=['claimed_until'], name='local_copy_claimed'), models.Index(condition=models.Q(('ended_at__isnull', False)), fields=['ended_at'], name='local_copy_ended')],
            },
        ),
        migrations.AddIndex(
            model_name='transfer',
            index=models.Index(models.F('destination_site'), models.F('source_site'), models.OrderBy(models.F('express'), descending=True), models.F('share'), models.OrderBy(models.F('priority'), descending=True), models.F('id'), condition=models.Q(('next_at__isnull', True), ('status', 'queued')), name='transfer_due'),
        ),
        migrations.AddIndex(
            model_name='transfer',
            index=models.Index(condition=models.Q(('next_at__isnull', False), ('status', 'queued')), fields=['next_at'], name='transfer_resting'),
        ),
        migrations.AddIndex(
            model_name='transfer',
            index=models.Index(condition=models.Q(('status__in', ['submitting', 'submitted'])), fields=['source_site', 'destination_site', 'source', 'destination'], name='transfer_active'),
        ),
        migrations.AddIndex(
            model_name='transfer',
            index=models.Index(condition=models.Q(('key__isnull', False)), fields=['key'], name='transfer_by_key'),
        ),
        migrations.AddIndex(
            model_name='transfer',
            index=models.Index(fields=['file'], name='transfer_of_file'),
        ),
        migrations.AddIndex(
            model_name='transfer',
            index=models.Index(condition=models.Q(('ended_at__isnull', False)), fields=['ended_at'], name='transfer_ended'),
        ),
        migrations.AddIndex(
            model_name='transfer',
            index=models.Index(fields=['source_site', 'destination_site', '-id'], name='transfer_list_by_link'),
        ),
        migrations.AddIndex(
            model_name='transfer',
            index=models.Index(fields=['vo', '-id'], name='transfer_list_by_vo'),
        ),
        migrations.AddConstraint(
            model_name='transfer',
            constraint=models.UniqueConstraint(condition=models.Q(('ended_at__isnull', True)), fields=('file', 'destination'), name='transfer_open_once'),
        ),
        migrations.AddConstraint(
            model_name='transfer',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('ended_at__isnull', False), ('status__in', ['cancelled', 'done', 'failed'])), models.Q(models.Q(('status__in', ['cancelled', 'done', 'failed']), _negated=True), ('ended_at__isnull', True)), _connector='OR'), name='transfer_ended_exactly_when_final'),
        ),
        migrations.AddConstraint(
            model_name='transfer',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('status__in', ['submitting', 'submitted']), _negated=True), models.Q(('key__isnull', False), models.Q(('source', ''), _negated=True)), _connector='OR'), name='transfer_keyed_while_active'),
        ),
        migrations.AddConstraint(
            model_name='transfer',
            constraint=models.CheckConstraint(condition=models.Q(('source', models.F('destination')), _negated=True), name='transfer_from_elsewhere'),
        ),
        migrations.AddConstraint(
            model_name='transferlink',
            constraint=models.UniqueConstraint(fields=('source', 'destination'), name='transfer_link_once'),
        ),
        migrations.AddConstraint(
            model_name='transferlink',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('max_active__isnull', True), ('max_active__gte', 0), _connector='OR'), models.Q(('mb_per_s__isnull', True), ('mb_per_s__gt', 0), _connector='OR')), name='transfer_link_limits'),
        ),
        migrations.AddIndex(
            model_name='transferwish',
            index=models.Index(condition=models.Q(('closed_at__isnull', True)), fields=['job_id'], name='transfer_wish_of_job'),
        ),
        migrations.AddIndex(
            model_name='transferwish',
            index=models.Index(condition=models.Q(('closed_at__isnull', True)), fields=['transfer'], name='transfer_wish_open'),
        ),
        migrations.AddIndex(
            model_name='transferwish',
            index=models.Index(condition=models.Q(('closed_at__isnull', True)), fields=['task_id', 'role'], name='transfer_wish_of_task'),
        ),
        migrations.AddIndex(
            model_name='transferwish',
            index=models.Index(condition=models.Q(('closed_at__isnull', True)), fields=['vo', 'owner'], name='transfer_wish_of_owner'),
        ),
        migrations.AddIndex(
            model_name='transferwish',
            index=models.Index(fields=['transfer', 'id'], name='transfer_wish_by_transfer'),
        ),
        migrations.AddConstraint(
            model_name='transferwish',
            constraint=models.UniqueConstraint(condition=models.Q(('job_id__isnull', False)), fields=('transfer', 'job_id', 'role'), name='transfer_wish_once'),
        ),
        migrations.AddConstraint(
            model_name='transferwish',
            constraint=models.UniqueConstraint(condition=models.Q(('job_id__isnull', True)), fields=('transfer', 'dataset_id', 'role'), name='transfer_wish_of_dataset_once'),
        ),
        migrations.RunSQL(TRANSFER.guard_sql("brokerage_transfer"), TRANSFER.unguard_sql("brokerage_transfer")),
        *(
            migrations.RunSQL(f"ALTER TABLE {table} SET (fillfactor = {fill}, {BUSY})", f"ALTER TABLE {table} {RESET}")
            for table, fill in (("brokerage_transfer", 80), ("brokerage_transferwish", 85), ("brokerage_localcopy", 75))
        ),
    ]
