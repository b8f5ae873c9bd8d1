"""Which nodes are not like the others: numbers and places only; nodeprint.words puts them into sentences."""
