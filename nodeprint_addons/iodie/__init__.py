"""The layout of a package, from timing alone (docs/iodie.md).

It consists of lines at one site, the relative positions of CCDs and memory, and the cost of each part of a path.
Numbers and sites only; `sentences` has the text.
"""
