"""The content of report pages: blocks built from a typed verdict and a packed fleet, rendered as PDF and HTML."""
