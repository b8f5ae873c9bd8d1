"""Reports: a campaign's verdict and bundles as PDF, HTML, and on the terminal."""
