"""A Grid Engine of the cluster's own: sge_qmaster on the login node, sge_execd on each node.

Its root is a directory of the cluster's state with the packages' programs in it. Commands find it by
/etc/default/gridengine, which their wrapper reads; /etc is the cluster's own.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

from namespaces import LOGIN, ClusterError, run, wait_for

#: What a machine needs, and the Debian packages that have it.
PROGRAMS = {"sge_qmaster": "gridengine-master", "sge_execd": "gridengine-exec", "qstat": "gridengine-client"}
_PACKAGED = Path("/var/lib/gridengine")
_PROGRAMS = "/usr/lib/gridengine"
_DEFAULTS = Path("/usr/share/gridengine")
READY_WITHIN_S = 60.0
#: A job has a node to itself with `-l exclusive=true`; the scheduler looks at each change, and a node that is silent
#: for half a minute is lost.
_COMPLEX = "exclusive excl BOOL EXCL YES YES 0 1000\n"
_CONFIGURATION = {
    "min_uid": "0",
    "min_gid": "0",
    "load_report_time": "00:00:02",
    "max_unheard": "00:00:20",
    "mailer": "/bin/true",
    "reporting_params": "accounting=true reporting=false flush_time=00:00:01 joblog=false sharelog=00:00:00",
    "finished_jobs": "0",
}
_SCHEDULER = {"schedule_interval": "0:0:1", "flush_submit_sec": "1", "flush_finish_sec": "1", "schedd_job_info": "true"}


def root(state: Path) -> Path:
    """The cluster's SGE_ROOT; it is there where the nodes have Grid Engine in place of Slurm."""
    return state / "sge"


def start_master(state: Path, names: list[str], cpus: int) -> None:
    """Write the configuration and start sge_qmaster with a queue of all nodes; called on the login node."""
    common, spool = root(state) / "default/common", state / "sge-spool"
    for folder in (common, spool / "qmaster/job_scripts", spool / "execd", Path("/var/run/gridengine")):
        folder.mkdir(parents=True, exist_ok=True)
    for name in ("bin", "lib", "util", "utilbin"):
        (root(state) / name).symlink_to(_PACKAGED / name)
    Path("/etc/default/gridengine").write_text(f"SGE_ROOT={root(state)}\nSGE_CELL=default\n")
    with Path("/etc/services").open("a") as services:
        services.write("sge_qmaster 6444/tcp\nsge_execd 6445/tcp\n")
    bootstrap = {
        "admin_user": "none",
        "default_domain": "none",
        "ignore_fqdn": "true",
        "spooling_method": "classic",
        "spooling_lib": "libspoolc",
        "spooling_params": f"{common};{spool}/qmaster",
        "binary_path": "/usr/sbin",
        "qmaster_spool_dir": f"{spool}/qmaster",
        "security_mode": "none",
        "listener_threads": "2",
        "worker_threads": "2",
        "scheduler_threads": "1",
    }
    (common / "bootstrap").write_text(_lines(bootstrap))
    (common / "act_qmaster").write_text(f"{LOGIN}\n")
    os.environ |= {"SGE_ROOT": str(root(state)), "SGE_CELL": "default"}
    run(f"{_PROGRAMS}/spoolinit", "classic", "libspoolc", bootstrap["spooling_params"], "init")
    resources = _DEFAULTS / "util/resources"
    configuration = _edited((_DEFAULTS / "default-configuration").read_text(), _CONFIGURATION)
    own = state / "sge-configuration"
    own.write_text(_edited(configuration, {"execd_spool_dir": f"{spool}/execd"}))
    run(f"{_PROGRAMS}/spooldefaults", "configuration", str(own))
    run(f"{_PROGRAMS}/spooldefaults", "complexes", str(resources / "centry"))
    run(f"{_PROGRAMS}/spooldefaults", "usersets", str(resources / "usersets"))
    run(f"{_PROGRAMS}/spooldefaults", "managers", "root")
    run("sge_qmaster")
    wait_for(lambda: _answers("qconf", "-sh"), READY_WITHIN_S)
    run("qconf", "-as", LOGIN)
    _set(state, "-Msconf", _edited(run("qconf", "-ssconf"), _SCHEDULER))
    _set(state, "-Mc", run("qconf", "-sc") + _COMPLEX)
    for name in names:
        run("qconf", "-ah", name)
        _set(state, "-Ae", _edited(_template("exec_host"), {"hostname": name, "complex_values": "exclusive=true"}))
    _set(state, "-Ahgrp", f"group_name @allhosts\nhostlist {' '.join(names)}\n")
    queue = {
        "qname": "main.q",
        "hostlist": "@allhosts",
        "slots": str(cpus),
        "shell": "/bin/sh",
        "pe_list": "NONE",
        "load_thresholds": "NONE",
    }
    _set(state, "-Aq", _edited(_template("queue"), queue))


def start_node(state: Path) -> None:
    """Start sge_execd; called on a node."""
    os.environ |= {"SGE_ROOT": str(root(state)), "SGE_CELL": "default"}
    run("sge_execd")


def wait_until_up(count: int) -> None:
    """Wait until sge_qmaster has heard of every node. Raises ClusterError."""

    def heard() -> bool:
        with suppress(ClusterError):
            rows = [line.split() for line in run("qstat", "-f").splitlines() if line.startswith("main.q@")]
            return len([row for row in rows if len(row) == 5]) == count  # a state would be a sixth cell
        return False

    wait_for(heard, READY_WITHIN_S)


def _answers(*command: str) -> bool:
    with suppress(ClusterError):
        run(*command)
        return True
    return False


def _lines(values: dict[str, str]) -> str:
    return "".join(f"{key} {value}\n" for key, value in values.items())


def _edited(text: str, values: dict[str, str]) -> str:
    """A text of keys and values with others; long values of qconf go on in the next line."""
    text = re.sub(r"\\\n\s*", "", text)
    for key, value in values.items():
        text, count = re.subn(rf"^{key}\s.*$", f"{key} {value}", text, flags=re.MULTILINE)
        text += "" if count else f"{key} {value}\n"
    return text


def _template(kind: str) -> str:
    """What qconf shows of a new object before it is edited."""
    if kind == "exec_host":
        keys = ("hostname", "load_scaling", "complex_values", "user_lists", "xuser_lists", "projects", "xprojects")
        return "".join(f"{key} NONE\n" for key in (*keys, "usage_scaling", "report_variables"))
    return str(run("qconf", "-sq"))


def _set(state: Path, option: str, text: str) -> None:
    """Give qconf a file."""
    path = state / "sge-object"
    path.write_text(text)
    run("qconf", option, str(path))
