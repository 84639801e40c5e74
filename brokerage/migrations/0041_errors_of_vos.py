from django.db import migrations, models

HOLD = "SELECT FROM brokerage_tallymark FOR UPDATE"
AT_QUEUES = "UPDATE brokerage_tallygroup SET family = 'error_at' WHERE family = 'error'"
GROUPS = """
INSERT INTO brokerage_tallygroup (family, vo, fingerprint) SELECT DISTINCT 'error', vo, fingerprint
FROM brokerage_tallygroup WHERE family = 'error_at'
"""
BUCKETS = """
INSERT INTO brokerage_tallybucket (step_s, group_id, what, at, n) SELECT b.step_s, s.id, b.what, b.at, sum(b.n)
FROM brokerage_tallybucket b JOIN brokerage_tallygroup p ON p.id = b.group_id AND p.family = 'error_at'
    JOIN brokerage_tallygroup s USING (vo, fingerprint)
WHERE s.family = 'error' GROUP BY 1, 2, 3, 4 HAVING sum(b.n) <> 0 ORDER BY 4, 2, 3
"""
BACK = """
DELETE FROM brokerage_tallybucket b USING brokerage_tallygroup g WHERE g.id = b.group_id AND g.family = 'error';
DELETE FROM brokerage_tallygroup WHERE family = 'error';
UPDATE brokerage_tallygroup SET family = 'error' WHERE family = 'error_at'
"""


class Migration(migrations.Migration):

    dependencies = [
        ('brokerage', '0040_who_used_a_file'),
    ]

    # Nobody counts meanwhile: what is there is summed up as it stands.
    operations = [
        migrations.AlterField(
            model_name='tallygroup',
            name='family',
            field=models.CharField(choices=[('vo', 'vo'), ('queue', 'queue'), ('share', 'share'), ('place', 'place'), ('user', 'user'), ('error', 'error'), ('error_at', 'error_at')], max_length=8),
        ),
        migrations.RunSQL([HOLD, AT_QUEUES, GROUPS, BUCKETS], BACK),
    ]
