"""Robust centres, variances and intervals: arrays in, arrays out. Nothing here knows a node or a CCX."""
