"""Figures: functions that draw typed data on a matplotlib Axes.

Each module has the data of its figures as types, pure functions that make them from a packed fleet or a verdict, and
functions `name(ax, data, style)` that draw them. They use no pyplot, so that they run in any process; `render` makes
SVG, PDF and files of them, and `style` reads the only places of colors and sizes.
"""
