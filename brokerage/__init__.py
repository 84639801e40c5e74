"""Supply and match: where work runs. Grid, jobs, pilots, brokers, matching, dispatch, timeouts."""
