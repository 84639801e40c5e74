"""What starts the pilots of submitted jobs (row W4): `port` says what it has to do, `choice` which ones there are."""
