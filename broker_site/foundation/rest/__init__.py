"""REST tools of every app: pages of lists, filters, and what the OpenAPI document tells."""
