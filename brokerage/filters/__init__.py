"""Named pure criteria that policies list, each one expression over the columns of a snapshot."""
