"""Is imported by a name that is made at run time."""

NAME = "late"


def shown() -> str:
    return NAME
