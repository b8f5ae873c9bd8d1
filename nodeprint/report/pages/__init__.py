"""What is on the pages of a report: blocks made from a typed verdict and a packed fleet, painted by PDF and HTML."""
