"""What every app stands on: kernel, configuration, access, agents' loop, and the tools for REST, SQL and admin pages that all
share."""
