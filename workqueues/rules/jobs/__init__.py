"""What jobs are made of: sizes, parameters, names, seeds, event ranges."""
