"""Figures: a few primitives that draw xarray Datasets on a matplotlib Axes.

`matrix`, `differences`, `intervals`, `curve` and `strip` draw nearly every figure; only the floor plan is special. A
module has the functions that make its data from a packed fleet or a verdict, and what draws them with `drawing`. They
use no pyplot, so that they run in any process. `render` makes SVG, PDF and files of them, and `style` reads the only
places of colors and sizes.
"""
