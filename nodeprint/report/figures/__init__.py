"""Figures: a few primitives that draw xarray Datasets on a matplotlib Axes.

`matrix`, `differences`, `intervals`, `curve` and `strip` draw every kind of figure; the floor plan, distributions and
matrices side by side are special. Functions make their data (`figure_data`) from a packed fleet or a verdict. They use
no pyplot, so that they run in any process. `render` makes SVG, PDF and files of them, and `style` reads the only places
of colors and sizes.
"""
