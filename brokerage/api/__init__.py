"""HTTP of supply: parse, authorise, call ledger or queries, answer."""
