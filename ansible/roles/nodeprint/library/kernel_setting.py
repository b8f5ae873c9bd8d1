#!/usr/bin/python
"""A setting of the running Linux kernel, in files of /proc and /sys: set, and put back.

Runs on the node, whose Python may be 3.6: hence the annotations in quotes.
"""

import json
import platform
import re
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = """
module: kernel_setting
short_description: sets a setting of the running kernel, or puts back what it was
description:
  - The former value of every file that is changed is recorded. Nothing is written that outlives a reboot.
  - With C(state=former) a file gets its former value, unless somebody else has changed it since.
options:
  name: {type: str, required: true, description: [The name under which former values are recorded.]}
  paths: {type: list, elements: str, required: true, description: [Files, as glob patterns; those that exist are set.]}
  value: {type: str, required: true, description: [What is written.]}
  record: {type: str, required: true, description: [The folder on the node for the record.]}
  state: {type: str, choices: [present, former], default: present, description: [Set it, or put it back.]}
attributes:
  check_mode: {support: full}
  diff_mode: {support: full}
"""

EXAMPLES = """
- name: Switch automatic NUMA balancing off
  kernel_setting:
    name: numa_balancing
    paths: [/proc/sys/kernel/numa_balancing]
    value: "0"
    record: /var/lib/nodeprint
"""

RETURN = """
left: {type: list, returned: always, description: Files that somebody else has changed since, and that are left alone.}
"""

BOOT = Path("/proc/sys/kernel/random/boot_id")


def current(path: Path) -> str:
    """The value in a file; of a list such as `always [madvise] never` the choice."""
    text = path.read_text().strip()
    choice = re.search(r"\[([^\]]*)\]", text)
    return choice.group(1) if choice else text


def recorded(record: Path, boot: str) -> "dict[Path, list[str]]":
    """What was changed since this boot: a pair of former and new value by file."""
    if not record.exists():
        return {}
    content = json.loads(record.read_text())
    return {Path(path): pair for path, pair in content["changed"].items()} if content["boot_id"] == boot else {}


def note(record: Path, boot: str, changed: "dict[Path, list[str]]") -> None:
    """Write the record, or remove it where nothing is changed any more."""
    if changed:
        record.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        by_name = {str(path): pair for path, pair in changed.items()}
        new = record.with_suffix(".tmp")
        new.write_text(json.dumps({"boot_id": boot, "changed": by_name}, indent=1, sort_keys=True))
        new.replace(record)
    elif record.exists():
        record.unlink()


def set_all(
    now: "dict[Path, str]", changed: "dict[Path, list[str]]", value: str
) -> "tuple[dict[Path, str], dict[Path, list[str]]]":
    """What to write into which file, and the record after it."""
    todo = {path: value for path in now if now[path] != value}
    pairs = {path: [changed[path][0] if path in changed else now[path], value] for path in todo}
    return todo, {**changed, **pairs}


def put_back(now: "dict[Path, str]", changed: "dict[Path, list[str]]") -> "dict[Path, str]":
    """What to write into which file; those that somebody else has changed since are left alone."""
    return {path: before for path, (before, ours) in changed.items() if now.get(path) == ours != before}


def write(path: Path, value: str) -> None:
    """Write a value; an error names the file, also where it can be opened and refuses the value."""
    try:
        path.write_text(value)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "paths": {"type": "list", "elements": "str", "required": True},
            "value": {"type": "str", "required": True},
            "record": {"type": "str", "required": True},
            "state": {"type": "str", "choices": ["present", "former"], "default": "present"},
        },
        supports_check_mode=True,
    )
    wanted = module.params
    record = Path(wanted["record"], wanted["name"] + ".json")
    left: list[str] = []
    try:
        boot = current(BOOT)
        changed = recorded(record, boot)
        now = {
            path: current(path) for pattern in wanted["paths"] for path in sorted(Path("/").glob(pattern.lstrip("/")))
        }
        if wanted["state"] == "present":
            todo, after = set_all(now, changed, wanted["value"])
        else:
            todo, after = put_back(now, changed), {}
            left = [str(path) for path, pair in sorted(changed.items()) if now.get(path) not in pair]
        if not module.check_mode:
            if after:  # before anything is written: what was there is never lost
                note(record, boot, after)
            for path in sorted(todo):
                write(path, todo[path])
            if not after:
                note(record, boot, after)
    except OSError as error:
        module.fail_json(
            msg=f"{error.filename}: {error.strerror}; only root may change it, and not every machine has this value"
        )
    except (ValueError, KeyError, TypeError):
        module.fail_json(msg=f"{record}: garbled; remove it, the former values are those of the next boot")
    for name in left:
        module.warn(platform.node() + ": " + name + " is left as it is: somebody else has changed it since")
    if not now and wanted["state"] == "present":
        module.warn(platform.node() + ": there is nothing to set: no file " + " or ".join(wanted["paths"]))
    former, new = ("".join(f"{path}: {side[path]}\n" for path in sorted(todo)) for side in (now, todo))
    module.exit_json(changed=bool(todo), left=left, diff={"before": former, "after": new})


if __name__ == "__main__":
    main()
