"""A ReFrame test that calls nodeprint on each node: reframe -c nodeprint_check.py -r --distribute=idle

NODEPRINT_HOME names a checkout in which `make setup` was called (or a module that sets it). The test measures the node that
ReFrame chose, judges, and fails by the outcomes of `fail_on`; medians are its performance variables. A single node has no
peer: compare with a baseline (`nodeprint baseline save`) by setting `baseline`.
"""

import os

import reframe as rfm
import reframe.utility.sanity as sn


@rfm.simple_test
class NodeprintCheck(rfm.RunOnlyRegressionTest):
    """The quick preset, about two minutes on a node of 2 x 64 cores."""

    #: What makes the test fail: not-measured, deviates, invalid or any.
    fail_on = variable(str, value="not-measured,found")
    #: quick, standard or thorough.
    preset = variable(str, value="quick")
    #: A saved baseline to compare with; empty: none.
    baseline = variable(str, value="")

    descr = "fingerprint of a node: core-to-core latency, memory, bandwidth, clocks"
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    num_tasks = 1
    exclusive_access = True
    time_limit = "30m"
    maintainers = ["nodeprint"]
    tags = {"maintenance", "acceptance"}

    home = os.environ.get("NODEPRINT_HOME", ".")
    executable = "./measure.sh"

    @run_before("run")
    def write_the_call(self):
        """A configuration and a script in the test's own folder: the results stay there."""
        compare = f' --baseline "{self.baseline}"' if self.baseline else ""
        self.prerun_cmds = [
            f'home="{self.home}"',
            'ln -sfn "$home"/{kernels,workflow,profiles,reports,nodeprint,.venv} . && mkdir -p config && cp -n "$home"/config/* config/',
            f"printf 'campaign: reframe\\npreset: {self.preset}\\n' >reframe.yaml",
            "printf '#!/bin/sh\\nworkflow/run --config reframe.yaml' >measure.sh && chmod +x measure.sh",
        ]
        self.postrun_cmds = [
            f"PATH=$PWD/.venv/bin:$PATH; nodeprint judge results/reframe --fail-on {self.fail_on}{compare} && echo ACCEPTED"
        ]

    @sanity_function
    def accepted(self):
        """The verdict has none of the outcomes of `fail_on`."""
        return sn.assert_found(r"^ACCEPTED$", self.stdout, msg="an outcome is among those of fail_on; see the report")

    @performance_function("ns", perf_key="memory latency")
    def memory_latency(self):
        """Median latency of a node's own memory."""
        return sn.extractsingle(r"memory latency\s+own node\s+([0-9.]+)", self.stdout, 1, float)
