"""What is in the store as files for other programs."""
