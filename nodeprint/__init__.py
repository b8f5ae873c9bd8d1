"""The fingerprint of every node of a cluster, and whether identically configured nodes really are the same."""

__version__ = "0.1.0"
