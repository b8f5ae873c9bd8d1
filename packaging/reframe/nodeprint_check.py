"""nodeprint by ReFrame, in two stages: each node is measured by a job of its own, then one test judges all of them.

    export NODEPRINT_HOME=/shared/nodeprint NODEPRINT_NODES='cn[001-400]'
    reframe -C site.py -c packaging/reframe/nodeprint_check.py -r

NODEPRINT_HOME names a checkout in which `make setup` was called. Without NODEPRINT_NODES this machine alone is measured. The
partition of ReFrame needs a scheduler of Slurm (`slurm` or `squeue`) and the launcher `local`. Each call makes a campaign of its
own, with its report, in NODEPRINT_RESULTS (`results` of the checkout), which the nodes must see.

NodeprintJudge fails by the outcomes of `fail_on`. By default that is anything but SAME: a node that has no peers fails, too, as
nothing compares it. Where that is wanted, say so: `-S NodeprintJudge.fail_on=not-measured,found`.
"""

import os
import shlex
import socket
import time

import reframe as rfm
import reframe.utility.sanity as sn
from ClusterShell.NodeSet import NodeSet

HOME = os.environ.get("NODEPRINT_HOME", ".")
LISTED = os.environ.get("NODEPRINT_NODES", "")
#: Not in a stage folder: ReFrame removes that of the first test when the last node is measured.
NAME = time.strftime("reframe-%Y-%m-%dT%H%M%S")
RESULTS = os.environ.get("NODEPRINT_RESULTS", f"{HOME}/results")
CAMPAIGN = f"{RESULTS}/{NAME}"
NODES = sorted(NodeSet(LISTED)) if LISTED else [socket.gethostname().partition(".")[0]]


class NodeprintBegin(rfm.RunOnlyRegressionTest):
    """Lists the nodes and what is measured, on the login node."""

    #: quick (two minutes on 2 x 64 cores), standard or thorough.
    preset = variable(str, value="quick")
    #: Further lines of the configuration, as in config/config.yaml.
    configuration = variable(str, value="")

    local = True
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    executable = f"{HOME}/.venv/bin/nodeprint"

    @run_before("run")
    def write_the_configuration(self):
        launch = f"launch: slurm\nslurm: {{nodes: '{LISTED}'}}" if LISTED else "launch: here"
        text = f"campaign: {NAME}\nresults: {RESULTS}\npreset: {self.preset}\n{launch}\n{self.configuration}\n"
        self.prerun_cmds = [
            f"printf '%s' {shlex.quote(text)} >{self.stagedir}/config.yaml",
            f"cd {shlex.quote(HOME)}",
        ]
        self.executable_opts = ["discover", "--config", f"{self.stagedir}/config.yaml"]

    @sanity_function
    def is_listed(self):
        return sn.path_isfile(f"{CAMPAIGN}/plan.tsv")


class NodeprintMeasure(rfm.RunOnlyRegressionTest):
    """Measures one node, which is named, with all that it has."""

    node = parameter(NODES)
    begin = fixture(NodeprintBegin, scope="session")
    #: Measurements are made so often, each by new processes.
    runs = variable(int, value=2)

    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    executable = f"{HOME}/kernels/node-run"
    num_tasks = 1
    exclusive_access = True
    time_limit = "30m"
    tags = {"maintenance", "acceptance"}

    @run_before("run")
    def name_the_node(self):
        if LISTED:
            self.job.options += [f"--nodelist={self.node}", "--mem=0", "--no-requeue"]
        self.executable_opts = [
            "--campaign",
            CAMPAIGN,
            "--node",
            self.node,
            "--job",
            "1",
            "--runs",
            str(self.runs),
            "--host",
            self.node,
        ]

    @sanity_function
    def has_an_outcome(self):
        """Which one it is the judge says: a node that is not measured must not keep the others from being judged."""
        return sn.path_isfile(f"{CAMPAIGN}/nodes/{self.node}/job1/status.json")


@rfm.simple_test
class NodeprintJudge(rfm.RunOnlyRegressionTest):
    """Judges all nodes together, writes the report, and fails by its outcomes."""

    #: not-same (anything but SAME), found, not-measured, configuration, invalid or nothing; several by commas.
    fail_on = variable(str, value="not-same")
    #: A saved baseline to compare with; empty: the nodes are compared with one another.
    baseline = variable(str, value="")
    measured = fixture(NodeprintMeasure, scope="environment", action="join")

    local = True
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    executable = f"{HOME}/.venv/bin/nodeprint"
    tags = {"maintenance", "acceptance"}

    @run_before("run")
    def judge_all(self):
        compare = ["--baseline", self.baseline] if self.baseline else []
        self.executable_opts = ["judge", CAMPAIGN, "--fail-on", self.fail_on, *compare]
        self.postrun_cmds = [
            "code=$?",
            f"{self.executable} report {shlex.quote(CAMPAIGN)}",
            '[ "$code" != 0 ] || echo ACCEPTED',
            f"{self.executable} show {shlex.quote(CAMPAIGN)}",
        ]

    @sanity_function
    def is_accepted(self):
        """The verdict has none of the outcomes of `fail_on`."""
        return sn.assert_found(r"^ACCEPTED$", self.stdout, msg=f"an outcome is among {self.fail_on}; see the report")
