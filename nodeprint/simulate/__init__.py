"""Simulated fleets: physical paths, silicon by seed, independent runs, injected defects; as records or arrays."""

from nodeprint.simulate.campaign_folder import write
from nodeprint.simulate.defects import EXAMPLES
from nodeprint.simulate.lines import Modes, modes_named, sites_of
from nodeprint.simulate.packed_arrays import fleet
from nodeprint.simulate.plan import Plan
from nodeprint.simulate.silicon import Variation

__all__ = ["EXAMPLES", "Modes", "Plan", "Variation", "fleet", "modes_named", "sites_of", "write"]
