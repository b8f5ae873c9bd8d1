"""The tools: a module reads the output of one."""
