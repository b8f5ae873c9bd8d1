"""This machine alone, measured in a minute and shown: a campaign of one node in the user's cache folder.

`plan` chooses what fits into the time, `measure` has node-run measure it, `result` reads what came of it and `view`
shows that.
"""
