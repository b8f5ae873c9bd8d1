"""Robust centres, variances and intervals: arrays in, arrays out. Nothing here depends on nodes or CCXs."""
