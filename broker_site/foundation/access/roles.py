"""The roles that a user can hold in a VO. What each may do stands in `permissions`."""

PRODUCTION = "production"
ROLES = ("submitter", PRODUCTION, "operator", "share-editor", "auditor")
