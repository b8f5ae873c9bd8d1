"""A one-minute measurement of this machine: a campaign of one node in the user's cache directory.

`time_budget` chooses measurements that fit into the time, `measure` has node-run take them, `result` reads them and
`view` prints them.
"""
