"""The derived folder of a campaign: what is made of its records once, and what everything else reads."""
