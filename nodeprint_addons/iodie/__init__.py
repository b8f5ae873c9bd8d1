"""What a package looks like inside, from timing alone: which lines are at one place, where CCDs and memory are
relative to each other, and what each part of a way costs (docs/iodie.md). Numbers and places; `sentences` has the
sentences.
"""
