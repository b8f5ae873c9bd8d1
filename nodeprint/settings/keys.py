"""Descriptions and limits of the keys of typed files, as msgspec metadata, and the JSON schema built from them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

try:
    from msgspec import Meta
except ModuleNotFoundError:  # Snakemake alone plans a clone, and makes no schema
    from types import SimpleNamespace as Meta  # type: ignore[assignment]


def key(meaning: str, **limits: Any) -> Meta:
    """The meaning of a key, and the limits of its value as msgspec.Meta has them (gt, ge, le, min_length)."""
    return Meta(description=meaning, **limits)


def written(pattern: str, allowed: str) -> Meta:
    """A text that matches `pattern`; `allowed` says in words what may be written."""
    return Meta(pattern=pattern, extra_json_schema={"allowed": allowed})


def choice(names: Iterable[str]) -> Meta:
    """One of `names`, where these are known when nodeprint runs: else it is a Literal."""
    listed = list(names)
    return Meta(pattern=f"^({'|'.join(map(re.escape, listed))})$", extra_json_schema={"enum": listed})


def schema_of(kind: type[object], title: str, *, whole: bool = False) -> dict[str, Any]:
    """The JSON schema of a file that is read as `kind`, without other keys. If `whole` (output), all keys are
    required."""
    import msgspec  # noqa: PLC0415 (not there where Snakemake alone plans a clone)

    made = msgspec.json.schema(kind)
    for definition in made["$defs"].values():
        definition["additionalProperties"] = False
        if whole and "properties" in definition:
            definition["required"] = list(definition["properties"])
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **made}
