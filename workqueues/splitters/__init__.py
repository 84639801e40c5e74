"""Pure rules that cut the ready files of a task into jobs; one file per way of cutting, all with the signature in `protocol`."""
