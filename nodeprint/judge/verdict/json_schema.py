"""The JSON schema of verdict.json, made from the types of a verdict."""

from __future__ import annotations

from typing import Any

import msgspec

from nodeprint.judge.verdict.campaign_verdict import Verdict


def schema() -> dict[str, Any]:
    """The JSON schema of verdict.json, made from these types. In the file, a number that is not finite is null. No
    other keys are allowed."""
    made = msgspec.json.schema(Verdict, schema_hook=lambda _: {})
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "verdict.json of nodeprint",
        **_as_written(made),
    }


def _as_written(node: Any) -> Any:
    if isinstance(node, list):
        return [_as_written(item) for item in node]
    if not isinstance(node, dict):
        return node
    out = {key: _as_written(value) for key, value in node.items()}
    if out.get("type") == "number":
        out["type"] = ["number", "null"]
    if "properties" in out:
        out["additionalProperties"] = False
    return out
