"""Files of installed packages whose code is not needed: importing matplotlib or cmcrameri takes a second."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path


def path(package: str, name: str) -> Path:
    """The file or folder `name` of a package. Raises ModuleNotFoundError where the package is not installed."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"No module named {package!r}", name=package)
    return Path(spec.origin).parent / name
