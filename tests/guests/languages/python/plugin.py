"""The fixture that the official MCP conformance suite expects on a server, written with the SDK as an author would, and
tools that show what a plugin in Python can do.

Tools are listed in the order of these imports: the suite calls the first one without arguments.
"""

import plain  # noqa: F401, I001
import asking  # noqa: F401
import tasks  # noqa: F401
import offers  # noqa: F401
import abilities  # noqa: F401
