"""The Python interface (docs/how-to/research.md) and tables for other programs."""
