"""Pages: from a request to a read and a template. They read only; what changes something is posted to other apps' routes."""
