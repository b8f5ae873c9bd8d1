"""From the records of a campaign's nodes to arrays, in five rooms: what was measured, where, and what came of it."""
