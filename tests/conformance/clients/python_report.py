"""How python_client.py says what it found: one JSON line per check on stdout, read by run.mjs."""

import contextlib
import json
import time

import anyio

# How long one check may take, in seconds.
STEP = 20
# How soon an answer must come that waits for nothing. A busy machine needs some of it.
SOON = 5


class Unmet(Exception):
    """A check failed: the sentence says what was seen and what was wanted."""


def expect(holds, sentence):
    if not holds:
        raise Unmet(sentence)


def expect_equal(seen, wanted, what):
    expect(seen == wanted, f"{what} is {seen!r}, wanted {wanted!r}")


def expect_in(part, text, what):
    expect(isinstance(text, str) and part in text, f"{what} lacks {part!r}: {text!r}")


@contextlib.contextmanager
def soon(what):
    """Fails if what is in it takes long."""
    with anyio.move_on_after(SOON) as scope:
        yield
    expect(not scope.cancelled_caught, f"{what}: not within {SOON} s")


def why(error):
    """The sentences in an error, which may be a group of them."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(why(one) for one in error.exceptions)
    return str(error) if isinstance(error, Unmet) else f"{type(error).__name__}: {error}"


def report(name, start, problem=None):
    took = round((time.monotonic() - start) * 1000)
    print(json.dumps({"check": name, "ok": problem is None, "why": problem, "ms": took}), flush=True)


async def check(name, body):
    problem, start = None, time.monotonic()
    try:
        with anyio.fail_after(STEP):
            await body()
    except Exception as error:
        problem = why(error)
    report(name, start, problem)
