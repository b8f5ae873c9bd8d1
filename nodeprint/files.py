"""Files written in one step: a reader sees the old one or the new one, whatever happens in between."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from nodeprint.errors import CannotWriteError


def write(path: Path, content: str | bytes) -> Path:
    """Write `path`, with the folders it lies in; returns it. Raises CannotWriteError."""
    partial = path.with_name(f".{path.name[:100]}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(content.encode() if isinstance(content, str) else content)
        partial.replace(path)
    except OSError as error:
        with suppress(OSError):
            partial.unlink()
        raise CannotWriteError(
            f"cannot be written ({error.strerror or error})",
            where=path,
            advice="make room or make the folder writable, or set `results` in the configuration",
        ) from error
    return path
