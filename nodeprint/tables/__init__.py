"""Figures of nodes that other programs measured: a table of rows, read from a file of any shape, for the judge."""
