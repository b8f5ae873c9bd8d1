"""Nodes over time: the series of every part over campaigns, where its level changes, and what to measure next."""
