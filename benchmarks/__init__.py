"""Benchmarks: one file per hot path, each a ratio to a bare reference taken in the same run (`python -m benchmarks NAME`)."""
