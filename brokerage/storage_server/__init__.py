"""The storage server: gives and takes the files below one marked root over HTTP, for addresses that the broker has signed.

It runs where the root is, at a site: the standard library, granian and `brokerage.pilot` are all that it needs; it knows no
database and no job. `python -m brokerage.storage_server --help`.
"""
