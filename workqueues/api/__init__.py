"""HTTP of demand: parse, authorise, call ledger or queries, answer."""
