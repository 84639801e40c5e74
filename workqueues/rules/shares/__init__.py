"""The tree of global shares: mapping, patterns, use."""
