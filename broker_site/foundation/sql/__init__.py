"""SQL tools of every app: prepared statements, COPY, wildcards."""
