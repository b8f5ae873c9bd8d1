"""What was measured in one job: its records as arrays, which of its runs count, and what instruments showed."""
