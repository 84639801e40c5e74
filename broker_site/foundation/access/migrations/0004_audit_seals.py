"""Audit rows get their number and time from the database, one transaction after the other, and are sealed in batches."""

import django.db.models.functions.datetime
from django.db import migrations, models

FORWARD = """
-- Whoever seals waits for those who add (the lock is shared among them) and then knows that no smaller number can follow.
CREATE FUNCTION access_audit_number() RETURNS trigger LANGUAGE plpgsql AS $number$
BEGIN
  PERFORM pg_advisory_xact_lock_shared(hashtext('access_audit'));
  NEW.id := nextval(pg_get_serial_sequence('access_audit', 'id')::regclass);
  NEW.at := clock_timestamp();
  RETURN NEW;
END $number$;
CREATE TRIGGER access_audit_numbered BEFORE INSERT ON access_audit FOR EACH ROW EXECUTE FUNCTION access_audit_number();
CREATE TRIGGER access_auditseal_append_only BEFORE UPDATE OR DELETE ON access_auditseal
  FOR EACH ROW EXECUTE FUNCTION access_audit_refuse();
"""
BACKWARD = """
DROP TRIGGER IF EXISTS access_auditseal_append_only ON access_auditseal;
DROP TRIGGER IF EXISTS access_audit_numbered ON access_audit;
DROP FUNCTION IF EXISTS access_audit_number();
"""


class Migration(migrations.Migration):
    dependencies = [("access", "0003_production_role")]

    operations = [
        migrations.CreateModel(
            name="AuditSeal",
            fields=[
                ("number", models.BigIntegerField(primary_key=True, serialize=False)),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                (
                    "last_id",
                    models.BigIntegerField(help_text="The batch holds the rows after those of the seal before, up to this one."),
                ),
                ("n_rows", models.IntegerField(verbose_name="rows")),
                ("digests", models.BinaryField(help_text="For each row its number and the first half of its SHA-256.")),
                ("hash", models.CharField(help_text="SHA-256 of the last seal's hash and of this batch.", max_length=64)),
            ],
        ),
        migrations.RunSQL(FORWARD, BACKWARD),
    ]
