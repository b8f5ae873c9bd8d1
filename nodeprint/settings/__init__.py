"""What a campaign is configured with: files, keys and their defaults; and where nodeprint's own files are."""
