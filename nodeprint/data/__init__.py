"""From the records of a campaign's nodes to arrays: what came of each node, and what was measured."""
