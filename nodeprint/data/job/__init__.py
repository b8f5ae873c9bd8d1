"""One job: its records as arrays, the runs that count, and the readings of instruments."""
