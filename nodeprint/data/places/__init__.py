"""Places that nodes share: slots of CPUs, classes of pairs, homes of lines, and a measurement over them as an array."""
