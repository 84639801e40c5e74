"""Elements of tasks: cut, pulled by child brokers, settled as these report, taken back and cancelled (rows W1 to W6)."""
