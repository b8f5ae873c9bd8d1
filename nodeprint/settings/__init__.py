"""The configuration of a campaign: files, keys and their defaults; and the paths of nodeprint's own files."""
