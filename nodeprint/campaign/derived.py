"""The one folder of a campaign that is made of its records: it may be removed at any time, and is made again."""

#: Of all that is in it, and of the rules that it is made by: one more where either changes.
SCHEMA = 12

FOLDER = "store"
#: The fleet as arrays; what is read of each node for itself; what came of each node, which the workflow waits for.
FLEET, NODES, STATES = f"{FOLDER}/fleet", f"{FOLDER}/nodes", f"{FOLDER}/fleet.json"
