"""Keys of files that have another name now: a former one is rejected with the new one."""

from __future__ import annotations

from collections.abc import Collection, Mapping

#: The name that a key has now, by its former name.
RENAMED: Mapping[str, str] = {
    "suppressions": "waivers",  # acceptance.yaml
    "suppressed": "waived",  # verdict.json, in a finding
}


def new_name(former: str, known: Collection[str]) -> str:
    """The name of a former key if it is among the `known` ones; empty if it was never renamed."""
    name = RENAMED.get(former, "")
    return name if name in known else ""
