"""What the judge found, in words: places in the numbers of a node, values with units, sentences."""
