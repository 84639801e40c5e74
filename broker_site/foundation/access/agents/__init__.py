"""The agents of access: one seals the audit."""
