"""What starts node-run on the nodes: one launcher a file, all of one protocol."""
