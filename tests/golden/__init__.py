"""Golden campaigns: what nodeprint says of some thirty small campaigns, kept as text."""
