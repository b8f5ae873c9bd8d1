"""What a machine is made of, read from Linux, lstopo or CPUID, with the provenance of every label."""
