"""Which nodes are not like the others: numbers and places only; messages.py puts them into sentences."""
