"""The Python interface (docs/research.md) and tables for other programs."""
