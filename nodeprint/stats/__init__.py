"""Robust centers, variances and intervals: arrays in, arrays out. Nothing here depends on nodes or CCXs."""
