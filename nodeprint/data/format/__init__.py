"""The record file: its lines as types, and how it is read."""
