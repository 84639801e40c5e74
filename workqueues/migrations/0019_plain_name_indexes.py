"""Names of files and storages are looked up whole: their second indexes, for beginnings of names, go.

The first ones are renamed, since to make them anew would hold up whoever registers files.
"""

from django.db import migrations, models

RENAMED = {
    "workqueues_cataloguefile_lfn_d79924ec": "catalogue_file_by_lfn",
    "workqueues_replica_storage_96ddedf0": "replica_of_storage",
}


class Migration(migrations.Migration):

    dependencies = [
        ('workqueues', '0018_read_grants'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[
                *(migrations.RunSQL(f'ALTER INDEX "{old}" RENAME TO "{new}"', f'ALTER INDEX "{new}" RENAME TO "{old}"') for old, new in RENAMED.items()),
                migrations.RunSQL(
                    'DROP INDEX "workqueues_cataloguefile_lfn_d79924ec_like"',
                    'CREATE INDEX "workqueues_cataloguefile_lfn_d79924ec_like" ON workqueues_cataloguefile (lfn varchar_pattern_ops)',
                ),
                migrations.RunSQL(
                    'DROP INDEX "workqueues_replica_storage_96ddedf0_like"',
                    'CREATE INDEX "workqueues_replica_storage_96ddedf0_like" ON workqueues_replica (storage varchar_pattern_ops)',
                ),
            ],
            state_operations=[
                migrations.AlterField(
                    model_name='cataloguefile',
                    name='lfn',
                    field=models.CharField(max_length=256),
                ),
                migrations.AlterField(
                    model_name='replica',
                    name='storage',
                    field=models.CharField(help_text='name of the storage endpoint', max_length=60),
                ),
                migrations.AddIndex(
                    model_name='cataloguefile',
                    index=models.Index(fields=['lfn'], name='catalogue_file_by_lfn'),
                ),
                migrations.AddIndex(
                    model_name='replica',
                    index=models.Index(fields=['storage'], name='replica_of_storage'),
                ),
            ],
        ),
    ]
