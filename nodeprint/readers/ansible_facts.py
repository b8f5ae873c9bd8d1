"""Fingerprints from the facts of Ansible's `setup` module, for nodes that nodeprint did not survey.

A file per host, from `ansible -m setup --tree FOLDER` or from Ansible's cache of facts as JSON files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nodeprint.campaign import derived
from nodeprint.campaign.node_sheet import checked_name
from nodeprint.data.store.packed import PackedNode
from nodeprint.errors import NodeprintError, printable, unreadable
from nodeprint.machine.fingerprint import Value, known_fields, normalized_cmdline

_ADVICE = "make it by `ansible nodes -m setup --tree FOLDER`"


def is_capture(folder: Path) -> bool:
    """Whether a directory holds captures: it has files, none of a campaign, and one of them has Ansible's facts."""
    if not folder.is_dir() or any((folder / name).exists() for name in ("nodes.tsv", derived.FLEET, "nodes")):
        return False
    return any(b'"ansible_' in path.read_bytes() for path in _files(folder))


def read_facts(folder: Path) -> list[PackedNode]:
    """The hosts of a directory of captures, by name; a host that Ansible did not reach has a reason and no fingerprint.

    Raises NodeprintError naming the file that is no capture.
    """
    nodes = []
    for path in _files(folder):
        content = _content(path)
        name = checked_name(path.name.removesuffix(".json"), path)
        failed = content.get("unreachable") or content.get("failed")
        reason = printable(str(content.get("msg") or "Ansible got no facts of it")) if failed else ""
        fields = {} if failed else dict(fingerprint(_facts(content, path)))
        nodes.append(PackedNode(name, host=name, state="not measured", reason=reason, fingerprint=fields))
    return nodes


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))


def fingerprint(facts: Mapping[str, Any]) -> dict[str, Value]:
    """The fields that Ansible's facts have; absent fields and those of another type are unknown."""
    sockets, cores = (_number(facts.get(f"ansible_processor_{key}")) for key in ("count", "cores"))
    threads = _number(facts.get("ansible_processor_threads_per_core"))
    megabytes = _number(facts.get("ansible_memtotal_mb"))
    role = facts.get("ansible_virtualization_role")
    fields: dict[str, Value | None] = {
        "cpu": _cpu(facts.get("ansible_processor")),
        "sockets": sockets,
        "cores": sockets * cores if sockets and cores else None,
        "cpus": _number(facts.get("ansible_processor_vcpus")),
        "smt": threads > 1 if threads else None,
        "virtual": role == "guest" if role in ("guest", "host", "NA") else None,
        "cmdline": _cmdline(facts.get("ansible_cmdline")),
        "memory_gib": round(megabytes / 1024) if megabytes else None,
        "bios": _text(facts.get("ansible_bios_version")),
        "product": _text(facts.get("ansible_product_name")),
        "kernel": _text(facts.get("ansible_kernel")),
        "os": " ".join(filter(None, (_text(facts.get(f"ansible_distribution{key}")) for key in ("", "_version")))),
    }
    return known_fields(fields)


def _content(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text())
    except OSError as error:
        raise unreadable(path, error) from error
    except (ValueError, RecursionError) as error:
        raise NodeprintError("not readable as JSON", where=path, advice=_ADVICE) from error
    if not isinstance(content, dict):
        raise NodeprintError("it has no keys", where=path, advice=_ADVICE)
    return content


def _facts(content: Mapping[str, Any], path: Path) -> Mapping[str, Any]:
    """The facts as `setup` prints them, or as they are in a cache: without a key above them."""
    facts = content.get("ansible_facts", content)
    if not isinstance(facts, dict) or not any(key.startswith("ansible_") for key in facts):
        raise NodeprintError("it has no key `ansible_facts`", where=path, advice=_ADVICE)
    return facts


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value not in ("", "NA") else None


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _cpu(processors: object) -> str | None:
    """The model name: the list has a number, a vendor and a name for each CPU."""
    names = [text for text in processors if isinstance(text, str)] if isinstance(processors, list) else []
    return max(names, key=len, default=None)


def _cmdline(parameters: object) -> str | None:
    """The parameters by name, as Ansible has forgotten their order."""
    if not isinstance(parameters, dict):
        return None
    usable = sorted((key, value) for key, value in parameters.items() if value is True or isinstance(value, str))
    return normalized_cmdline(" ".join(key if value is True else f"{key}={value}" for key, value in usable))
