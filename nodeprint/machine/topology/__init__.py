"""The topology of a machine, read from Linux, lstopo or CPUID, with the provenance of every label."""
