"""A node as its files describe it: topology, configuration, warnings."""
