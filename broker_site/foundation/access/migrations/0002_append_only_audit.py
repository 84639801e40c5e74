"""The audit is append-only: the database refuses to change or delete its rows, whoever asks."""

from django.db import migrations

FORWARD = """
CREATE FUNCTION access_audit_refuse() RETURNS trigger LANGUAGE plpgsql AS $guard$
BEGIN
  RAISE EXCEPTION 'the audit is append-only' USING ERRCODE = 'insufficient_privilege', TABLE = 'access_audit';
END $guard$;
CREATE TRIGGER access_audit_append_only BEFORE UPDATE OR DELETE ON access_audit FOR EACH ROW EXECUTE FUNCTION access_audit_refuse();
"""
BACKWARD = """
DROP TRIGGER IF EXISTS access_audit_append_only ON access_audit;
DROP FUNCTION IF EXISTS access_audit_refuse();
"""


class Migration(migrations.Migration):
    dependencies = [("access", "0001_initial")]
    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
