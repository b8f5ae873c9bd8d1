"""Are these nodes the same? From packed arrays to outcomes, findings and files for other tools."""
