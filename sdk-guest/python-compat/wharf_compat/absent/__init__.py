"""Modules in the place of those that do not exist inside of a plugin."""
