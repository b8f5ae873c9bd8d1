"""A Snakemake executor for measuring: each job of Snakemake is a job of a scheduler on one whole node.

The job runs the command of the rule, without Snakemake or Python. The launcher of the campaign's configuration submits
and follows it (nodeprint/campaign/launchers/). The resources of a rule describe its jobs:

    submit_options options of the launcher's submit command, which name the node
    job_name       the name in the scheduler, the same in every call; it and the node identify a job of a former call
    unavailable_s  longest wait for a node that is out of service, in seconds
    late_s         longest delay until the login node sees the files of a node, in seconds
    silence_s      longest wait for a controller that does not answer, in seconds
    at_a_time      most jobs of the campaign in the queue, whatever --jobs allows
    per_second     most submissions a second
    poll_s         interval between queries of the queue, in seconds

The first output of a rule is status.json in the directory of its job, which also gets launch.log. The campaign is three
directories above. If a job ends without status.json after its `retries`, the executor writes one with the reason, and
the workflow continues with the others.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

from snakemake_interface_common.exceptions import WorkflowError
from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor
from snakemake_interface_executor_plugins.jobs import JobExecutorInterface
from snakemake_interface_executor_plugins.logging import LoggerExecutorInterface
from snakemake_interface_executor_plugins.settings import CommonSettings
from snakemake_interface_executor_plugins.workflow import WorkflowExecutorInterface

# of a clone that is not installed; installed it is found before
sys.path.append(str(Path(__file__).parents[2]))

from nodeprint.campaign import lost_jobs
from nodeprint.errors import NodeprintError

if TYPE_CHECKING:
    from snakemake_executor_plugin_nodeprint import jobs

common_settings = CommonSettings(
    non_local_exec=True,
    implies_no_shared_fs=False,
    job_deploy_sources=False,
    pass_default_storage_provider_args=False,
    pass_default_resources_args=False,
    pass_envvar_declarations_to_cmd=False,
    auto_deploy_default_storage_provider=False,
)


class Executor(RemoteExecutor):  # type: ignore[misc] # Snakemake has no types
    """Passes the jobs of Snakemake to the `jobs.Launch` of their campaign, and returns their outcomes."""

    def __init__(self, workflow: WorkflowExecutorInterface, logger: LoggerExecutorInterface) -> None:
        try:
            from snakemake_executor_plugin_nodeprint import jobs  # noqa: PLC0415 (every Snakemake imports all plugins)
        except ImportError as missing:
            raise WorkflowError(f"the executor needs {missing.name} beside Snakemake: install nodeprint") from missing
        self.jobs = jobs
        self.launches: dict[Path, jobs.Launch] = {}
        super().__init__(workflow, logger)  # the thread of the checks begins here
        self.next_seconds_between_status_checks = jobs.LOOK_S

    def run_job(self, job: JobExecutorInterface) -> None:
        """Take a job of Snakemake; it is submitted when the queue is known and has room."""
        if job.is_group():
            raise WorkflowError("a node is a job of its own: call Snakemake without --groups and --group-components")
        status = Path(str(job.output[0]))
        # what Snakemake evaluates lazily is asked for in its own thread
        node_job = self.jobs.job_of(status.parent, job.shellcmd, job.resources)
        self.report_job_submission(SubmittedJobInfo(job, aux={"job": node_job}))

    async def check_active_jobs(self, active_jobs: list[SubmittedJobInfo]) -> AsyncIterator[SubmittedJobInfo]:
        """Submit, look, ask, and tell Snakemake what ended."""
        try:
            for info in active_jobs:
                self.launch(info.aux["job"].campaign).take(info.aux["job"])
            for launch in self.launches.values():
                launch.step()
            for info in active_jobs:
                if not self.has_ended(info):
                    yield info
        except NodeprintError as error:
            raise WorkflowError(str(error)) from error
        # with many jobs that wait it takes a hundredth of the time to look
        submitting = any(launch.is_submitting for launch in self.launches.values())
        pause_s = self.jobs.LOOK_S if submitting else 100 * sum(launch.cost_s for launch in self.launches.values())
        self.next_seconds_between_status_checks = min(max(pause_s, self.jobs.LOOK_S), self.jobs.LONGEST_LOOK_S)

    def launch(self, campaign: Path) -> jobs.Launch:
        """The jobs of a campaign."""
        if campaign not in self.launches:
            self.launches[campaign] = self.jobs.Launch(campaign)
        return self.launches[campaign]

    def has_ended(self, info: SubmittedJobInfo) -> bool:
        """Whether a job has an outcome; then Snakemake knows it, too."""
        job, node_job = info.job, info.aux["job"]
        if not node_job.outcome:
            return False
        if node_job.outcome != "absent":
            self.report_job_success(info)
        elif job.restart_times > job.attempt - 1:
            self.report_job_error(info, msg=f"{node_job.why}. ")
        else:
            lost_jobs.settle(node_job.folder, node_job.why)
            self.report_job_success(info)
        return True

    def cancel_jobs(self, active_jobs: list[SubmittedJobInfo]) -> None:
        """End all that are in the queue. (`active_jobs` is empty while they are being checked.)"""
        for launch in self.launches.values():
            launch.cancel()

    def shutdown(self) -> None:
        """The end of the workflow."""
        super().shutdown()
        for launch in self.launches.values():
            launch.end()
