"""What a package looks like inside, from timing alone: which lines live together, where CCDs and memory are towards
each other, and what each part of a way costs (docs/iodie.md). Numbers and places; sentences are in `sentences`.
"""
