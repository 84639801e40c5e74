"""One moment of the grid with the jobs in it: what decisions are taken on, and its stored form."""
