"""The role production, for what every submitter could ask for until now: today's submitters get it, their tokens too.

Each gets a line in the audit; the number of roles that were given is printed.
"""

from django.db import migrations, models

ROLES = ("submitter", "production", "operator", "share-editor", "auditor")
GIVEN = """
WITH given AS (
    INSERT INTO access_role (user_id, vo, role) SELECT user_id, vo, 'production' FROM access_role WHERE role = 'submitter'
    ON CONFLICT (user_id, vo, role) DO NOTHING RETURNING user_id, vo
)
INSERT INTO access_audit (who, kind, prefix, vo, act, object, outcome, reason, after, trace_id)
SELECT 'system', 'anonymous', '', given.vo, 'role.give', 'user ' || u.username, 'done',
    'upgrade: submitters of before keep what now needs the role production', '{"role": "production"}', ''
FROM given JOIN access_user u ON u.id = given.user_id
"""
TOKENS = """
UPDATE access_credential SET claims = jsonb_set(claims, '{roles}', claims->'roles' || '["production"]')
WHERE claims->'roles' ? 'submitter' AND NOT claims->'roles' ? 'production'
"""
TAKEN = """
DELETE FROM access_role WHERE role = 'production';
UPDATE access_credential SET claims = jsonb_set(claims, '{roles}', (claims->'roles') - 'production')
WHERE claims->'roles' ? 'production'
"""


def give(apps, schema_editor):
    """Give the role to submitters, and say so."""
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(GIVEN)
        if given := cursor.rowcount:
            print(f"\n    {given} submitters were given the role production; take it from those who do not need it", end="")
        cursor.execute(TOKENS)


def take(apps, schema_editor):
    """The tables as they were."""
    schema_editor.execute(TAKEN)


class Migration(migrations.Migration):
    dependencies = [("access", "0002_append_only_audit")]

    operations = [
        migrations.RemoveConstraint("role", "access_role_known"),
        migrations.AlterField("role", "role", models.CharField(choices=[(role, role) for role in ROLES], max_length=16)),
        migrations.AddConstraint("role", models.CheckConstraint(condition=models.Q(role__in=ROLES), name="access_role_known")),
        migrations.RunPython(give, take),
    ]
