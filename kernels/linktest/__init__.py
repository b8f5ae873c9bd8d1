"""The parts of LinkTest: schedule and statistics (pure), records, ranks, and the launcher's side."""
