"""Changes become lines of sets: what was kept until now are sets of one line each, with the revision that they had."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

OPEN = "DROP TRIGGER gdpconfig_change_kept ON gdpconfig_change;"
FILL = """
INSERT INTO gdpconfig_changeset (revision, who, why, ticket, source, at, reverts_id)
SELECT revision, who, why, '', '', at, reverts_id FROM gdpconfig_change ORDER BY revision;
SET CONSTRAINTS ALL IMMEDIATE; SET CONSTRAINTS ALL DEFERRED;
"""
NUMBER = """
SELECT setval(pg_get_serial_sequence('gdpconfig_change', 'id'), coalesce(max(id), 0) + 1, false) FROM gdpconfig_change;
UPDATE gdpconfig_change SET change_set_id = id;
SET CONSTRAINTS ALL IMMEDIATE; SET CONSTRAINTS ALL DEFERRED;
"""
CLOSE = """
CREATE OR REPLACE FUNCTION gdpconfig_change_kept() RETURNS trigger LANGUAGE plpgsql AS $kept$
BEGIN
  RAISE EXCEPTION '%: a change is history and cannot be altered or deleted', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END $kept$;
CREATE TRIGGER gdpconfig_change_kept BEFORE UPDATE OR DELETE ON gdpconfig_change FOR EACH ROW EXECUTE FUNCTION gdpconfig_change_kept();
CREATE TRIGGER gdpconfig_changeset_kept BEFORE UPDATE OR DELETE ON gdpconfig_changeset FOR EACH ROW EXECUTE FUNCTION gdpconfig_change_kept();
"""


class Migration(migrations.Migration):

    dependencies = [
        ('gdpconfig', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='ChangeSet',
            fields=[
                ('revision', models.BigIntegerField(help_text='The revision that this set made.', primary_key=True, serialize=False)),
                ('who', models.CharField(help_text='User or program that changed it.', max_length=150)),
                ('why', models.TextField(help_text='The reason that was given.')),
                ('ticket', models.CharField(blank=True, help_text='The ticket that was named; may be empty.', max_length=100)),
                ('source', models.CharField(help_text='By which way: page, rest, admin, import, command, expiry.', max_length=16)),
                ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), help_text="Time of the change by the database's clock.")),
                ('reverts', models.ForeignKey(help_text='The set that this one takes back.', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='reverted_by', to='gdpconfig.changeset')),
            ],
            options={
                'ordering': ['-revision'],
                'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('who', ''), _negated=True), models.Q(('why', ''), _negated=True)), name='gdpconfig_changeset_who_why')],
            },
        ),
        migrations.RunSQL(OPEN),
        migrations.RunSQL(FILL),
        migrations.RemoveIndex(model_name='change', name='gdpconfig_change_by_key'),
        migrations.RemoveConstraint(model_name='change', name='gdpconfig_change_who_why'),
        migrations.AlterModelOptions(name='change', options={'ordering': ['-id']}),
        migrations.RemoveField(model_name='change', name='reverts'),
        migrations.RemoveField(model_name='change', name='who'),
        migrations.RemoveField(model_name='change', name='why'),
        migrations.RemoveField(model_name='change', name='at'),
        migrations.RenameField(model_name='change', old_name='revision', new_name='id'),
        migrations.AlterField(model_name='change', name='id', field=models.BigAutoField(primary_key=True, serialize=False)),
        migrations.AddField(
            model_name='change', name='change_set',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='lines', to='gdpconfig.changeset'),
        ),
        migrations.RunSQL(NUMBER),
        migrations.AlterField(
            model_name='change', name='change_set',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='lines', to='gdpconfig.changeset'),
        ),
        migrations.AddField(
            model_name='change', name='kind',
            field=models.CharField(default='config', help_text='What is changed: config, an override of a key.', max_length=16),
        ),
        migrations.AddField(
            model_name='change', name='until_before',
            field=models.DateTimeField(help_text='When the override before would have ended; null: never.', null=True),
        ),
        migrations.AddField(
            model_name='change', name='until',
            field=models.DateTimeField(help_text='When the override ends; null: never.', null=True),
        ),
        migrations.AddField(
            model_name='override', name='until',
            field=models.DateTimeField(help_text='When it ends by itself; null: never.', null=True),
        ),
        migrations.AddField(
            model_name='override', name='afterwards',
            field=models.TextField(help_text='The lasting override that holds again then; null: none.', null=True),
        ),
        migrations.AddIndex(
            model_name='change',
            index=models.Index(fields=['component', 'name', '-change_set'], name='gdpconfig_change_by_key'),
        ),
        migrations.AddConstraint(
            model_name='change',
            constraint=models.UniqueConstraint(fields=('change_set', 'kind', 'app', 'component', 'name', 'vo'), name='gdpconfig_change_once_a_set'),
        ),
        migrations.AlterField(
            model_name='revision', name='number',
            field=models.BigIntegerField(default=0, help_text='Number of the last change set.'),
        ),
        migrations.RunSQL(CLOSE),
    ]
