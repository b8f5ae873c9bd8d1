"""Nodes over time: the series of every component over campaigns, its level changes, and the next measurements."""
