"""Readers of other programs: matrices of pairs of CPUs, and tables of values of nodes; a tool a file."""
