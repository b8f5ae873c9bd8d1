"""Nodes over time: the series of every component over campaigns, where its level changes, and what to measure next."""
