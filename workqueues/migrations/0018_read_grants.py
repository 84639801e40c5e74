"""Grants to read datasets of another VO; a task's dataset knows the VO that has it."""

import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('workqueues', '0017_quarantine'),
    ]

    operations = [
        migrations.AddField(
            model_name='dataset',
            name='data_vo',
            field=models.CharField(blank=True, db_default='', default='', help_text="VO that has an input in the catalogue, and the scope of its name here; empty: the task's own", max_length=32),
        ),
        migrations.CreateModel(
            name='ReadGrant',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('vo', models.CharField(help_text='whose datasets they are', max_length=32, verbose_name='VO')),
                ('pattern', models.CharField(help_text='names of datasets in the VO; * stands for any text', max_length=255)),
                ('owner', models.CharField(blank=True, db_default='', default='', help_text='only datasets of this user; empty: all of the VO, which an operator may give', max_length=128)),
                ('grantee_kind', models.CharField(choices=[('vo', 'vo'), ('user', 'user')], help_text='vo or user', max_length=8, verbose_name='grantee is a')),
                ('grantee', models.CharField(help_text='the VO whose tasks, or the user whose tasks may read them', max_length=128)),
                ('made_by', models.CharField(editable=False, max_length=150)),
                ('made_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('ends_at', models.DateTimeField(blank=True, help_text='until when; empty: until it is withdrawn', null=True)),
            ],
            options={
                'indexes': [models.Index(fields=['grantee', 'grantee_kind', 'vo'], name='read_grant_by_grantee')],
                'constraints': [models.UniqueConstraint(fields=('vo', 'pattern', 'owner', 'grantee_kind', 'grantee'), name='read_grant_once'), models.CheckConstraint(condition=models.Q(('grantee_kind__in', ('vo', 'user'))), name='read_grant_kind_known')],
            },
        ),
    ]
