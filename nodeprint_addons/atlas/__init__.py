"""Cards: nodes as small signed files, compared with published machines and shown as a site."""
