"""The command `broker`: its words, how it prints, what it asks, its exit codes."""
