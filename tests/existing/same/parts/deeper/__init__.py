"""A package that nothing imports by its name."""
