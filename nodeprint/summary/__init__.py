"""A node in a few numbers, for a terminal, a reference of a fleet or other programs."""
