"""Reports: a campaign's verdict and records as PDF, HTML, and on the terminal."""
