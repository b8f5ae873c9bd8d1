"""Other tools' output, made up in their formats."""

from __future__ import annotations

C2CLAT = """ CPU    0    2    4    6
   0    0   92   66   62
   2   92    0   50   54
   4   66   50    0   48
   6   62   54   48    0
"""
