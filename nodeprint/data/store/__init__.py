"""The store of a campaign: a derived directory that is made from the records once and read by everything else."""
