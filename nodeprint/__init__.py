"""The fingerprint of every node of a cluster, and whether identically configured nodes really are the same.

`nodeprint.open(campaign)` is the Python interface (docs/how-to/research.md). It is loaded on first use: figures and
tables take a second to import, and no other part of the package needs them. `__init__.pyi` has its type.
"""

from __future__ import annotations

from importlib import import_module

from nodeprint.errors import NodeprintError

__all__ = ["__version__", "open"]

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    if name == "open":
        try:
            return import_module("nodeprint.interface.open_campaign").open_campaign
        except ModuleNotFoundError as error:
            advice = "install nodeprint with its dependencies: pip install nodeprint"
            raise NodeprintError(f"nodeprint.open needs {error.name}, which is not installed", advice=advice) from error
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
