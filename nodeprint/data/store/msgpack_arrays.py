"""Arrays of numpy in files of msgpack, for msgspec's hooks."""

from __future__ import annotations

from typing import Any

import numpy as np


def encoded(array: Any) -> Any:
    """An array as its type, shape and content, or a number of numpy's (`enc_hook`)."""
    if isinstance(array, np.generic):
        return array.item()
    return array.dtype.str, array.shape, np.ascontiguousarray(array).tobytes()


def decoded(_: type, kept: Any) -> Any:
    """What `encoded` made an array of, as an array (`dec_hook`). Raises ValueError or TypeError where it is none."""
    dtype, shape, content = kept
    return np.frombuffer(content, dtype).reshape(shape)
