"""Export the store as files for other programs."""
