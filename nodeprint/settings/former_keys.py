"""Former names of keys: a file that has one is rejected with the new name."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

#: The names that a key has now, by its former name. Each file has one of them.
RENAMED: Mapping[str, tuple[str, ...]] = {
    # acceptance.yaml, kernels/*/measurements.yaml
    "bound": ("tolerance",),
    "bound_without_boost": ("tolerance_without_boost",),
    "bounds": ("tolerances",),
    "decides": ("criteria", "criterion"),
    "suppressions": ("waivers",),
    # verdict.json, deviations.nc
    "bound_unit": ("tolerance_unit",),
    "family": ("component_type",),
    "margins": ("agreements",),
    "part": ("component",),
    "possible": ("peak",),
    "rests_on": ("based_on",),
    "smallest_bound": ("smallest_tolerance",),
    "subject": ("metric",),
    "suppressed": ("waived",),
    "times_bound": ("times_tolerance",),
}


def new_name(former: str, known: Collection[str]) -> str:
    """Return the name of a former key among the `known` ones, or nothing if it was never renamed."""
    return next((name for name in RENAMED.get(former, ()) if name in known), "")


def with_new_names(content: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    """Return `content` with the `known` name of each key that was renamed."""
    return {new_name(key, known) or key: value for key, value in content.items()}


def named(keys: Collection[str]) -> str:
    """Name each former key among `keys` with its new name, as `bound (now tolerance)`."""
    return ", ".join(f"{key} (now {' or '.join(RENAMED[key])})" for key in keys if key in RENAMED)
