"""What the admin pages of every app show in the same way."""
