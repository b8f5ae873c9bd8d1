"""The directory of a campaign while it is measured: its nodes, jobs, plan and progress."""
