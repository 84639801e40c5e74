"""The roles that a user can hold in a VO. What each may do stands in `permissions`."""

ROLES = ("submitter", "operator", "share-editor", "auditor")
