"""`_bz2` and `_lzma` in plain Python, compared with those of this Python: random data, damaged data, pieces and options."""

from __future__ import annotations

import _lzma
import bz2
import io
import lzma
import random
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from wharf_compat.absent import bz2_, lzma_, lzma_options

TEXT = b"".join(path.read_bytes() for path in sorted(Path(bz2_.__file__).parent.glob("*.py")))
LZMA1, LZMA2, DELTA = lzma.FILTER_LZMA1, lzma.FILTER_LZMA2, lzma.FILTER_DELTA
RANDOMIZED = "is randomized"


def data_of(random: random.Random) -> bytes:
    """Makes random bytes, few letters, a piece of a text, runs, what is repeated, or several of them."""
    kind, size = random.randrange(6), random.randrange(random.choice([1, 2, 6, 50, 300, 3000]))
    if kind == 0:
        return random.randbytes(size)
    if kind == 1:
        return bytes(random.choice(b"ab") for _ in range(size))
    if kind == 2:
        start = random.randrange(len(TEXT) - size)
        return TEXT[start : start + size]
    if kind == 3:
        return b"".join(bytes([random.randrange(3)]) * random.randrange(600) for _ in range(size // 200))
    if kind == 4:
        return random.randbytes(random.randrange(1, 50)) * (size // 20)
    return data_of(random) + data_of(random)


def pieces(data: bytes, random: random.Random) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        size = random.randrange(200)
        yield data[at : at + size]
        at += size


def damaged(data: bytes, random: random.Random) -> bytes:
    """Ends data too early, or changes a bit: often one of the header, sometimes with the checksum that belongs to it."""
    if random.randrange(4) == 0:
        return data[: random.randrange(len(data) + 1)]
    changed = bytearray(data)
    changed[random.randrange(min(len(changed), 40) if random.randrange(2) else len(changed))] ^= 1 << random.randrange(8)
    if changed[:6] == lzma_options.MAGIC and len(changed) > 60 and random.randrange(2):
        changed[20:24] = zlib.crc32(changed[12:20]).to_bytes(4, "little")
    return bytes(changed)


def said(make: Callable[[], Any], data: bytes) -> tuple[Any, ...]:
    """Returns what a decompressor says, or its error."""
    try:
        one = make()
        made = one.decompress(data)
        return made, one.eof, one.unused_data, one.needs_input, getattr(one, "check", None)
    except (OSError, EOFError, lzma.LZMAError, lzma_.LZMAError) as problem:
        return type(problem).__name__, str(problem)


def in_pieces(one: Any, data: bytes, random: random.Random) -> bytes:
    """Decompresses with a random limit each time, as files do."""
    made, left = b"", pieces(data, random)
    for _ in range(100 * len(data) + 100_000):
        if one.eof:
            return made
        most = random.choice([-1, 1, 7, 1000])
        new = one.decompress(next(left, b"") if one.needs_input else b"", max_length=most)
        assert most < 0 or len(new) <= most
        made += new
    raise AssertionError("it does not end")


class Bzip2(unittest.TestCase):
    def test_streams_are_those_of_libbz2(self) -> None:
        random_ = random.Random(1)
        for _ in range(300):
            # What is nothing but a repeated text may begin elsewhere.
            data, level = data_of(random_), random_.randrange(1, 10)
            data = data and data + b"the end"
            one = bz2_.BZ2Compressor(level)
            made = b"".join(one.compress(piece) for piece in pieces(data, random_)) + one.flush()
            self.assertEqual(made, bz2.compress(data, level), (level, data))

    def test_large_data_have_several_blocks(self) -> None:
        random_ = random.Random(2)
        for data in (TEXT[:110_000] + random_.randbytes(10_000), b"".join(bytes([at % 7]) * at for at in range(900))):
            one = bz2_.BZ2Compressor(1)
            made = one.compress(data) + one.flush()
            self.assertEqual(made, bz2.compress(data, 1))
            self.assertEqual(bz2_.BZ2Decompressor().decompress(made), data)
        one = bz2_.BZ2Compressor(1)
        # libbz2 begins this block elsewhere, which is as right.
        self.assertEqual(bz2.decompress(one.compress(bytes(10**7)) + one.flush()), bytes(10**7))

    def test_streams_are_read_in_pieces(self) -> None:
        random_ = random.Random(3)
        for _ in range(300):
            data = data_of(random_)
            one = bz2_.BZ2Decompressor()
            self.assertEqual(in_pieces(one, bz2.compress(data) + b"rest", random_), data)
            self.assertTrue(b"rest".startswith(one.unused_data))
            with self.assertRaisesRegex(EOFError, "End of stream already reached"):
                one.decompress(b"")

    def test_damaged_streams_are_told_as_by_libbz2(self) -> None:
        random_ = random.Random(4)
        for _ in range(1500):
            data = damaged(bz2.compress(data_of(random_), random_.randrange(1, 10)), random_)
            mine = said(bz2_.BZ2Decompressor, data)
            if RANDOMIZED not in str(mine[1]):
                self.assertEqual(mine, said(bz2.BZ2Decompressor, data), data)

    def test_limits_end_where_those_of_libbz2_do(self) -> None:
        data = bz2.compress(b"aaaabcd" * 9)
        for most in range(70):
            one, other = bz2_.BZ2Decompressor(), bz2.BZ2Decompressor()
            for _ in range(3):
                self.assertEqual(one.decompress(b"" if one._room >= 0 else data, most), other.decompress(b"" if _ else data, most))
                self.assertEqual((one.eof, one.needs_input), (other.eof, other.needs_input), most)
                if other.eof:
                    break

    def test_wrong_arguments_are_told(self) -> None:
        for calls in (
            lambda of: of.BZ2Compressor(0), lambda of: of.BZ2Compressor(10), lambda of: of.BZ2Compressor("a"),
            lambda of: of.BZ2Compressor().compress("a"),
            lambda of: of.BZ2Decompressor().decompress("a"), lambda of: (one := of.BZ2Compressor(), one.flush(), one.flush()),
            lambda of: (one := of.BZ2Compressor(), one.flush(), one.compress(b"")), lambda of: of.BZ2Decompressor().decompress(b"", 1.5),
        ):  # fmt: skip
            self.assertEqual(error_of(calls, bz2_), error_of(calls, bz2))


def error_of(call: Callable[[Any], Any], of: Any) -> Any:
    try:
        return call(of)
    except Exception as problem:
        return type(problem).__name__, str(problem)


class Lzma(unittest.TestCase):
    def options(self, random: random.Random) -> tuple[int, dict[str, Any]]:
        format, preset = random.choice([lzma.FORMAT_XZ, lzma.FORMAT_XZ, lzma.FORMAT_ALONE, lzma.FORMAT_RAW]), random.randrange(4)
        if format != lzma.FORMAT_RAW:
            return format, {"preset": preset, **({"check": random.choice([0, 1, 4, 10, -1])} if format == lzma.FORMAT_XZ else {})}
        lc = random.randrange(5)
        last = {"id": random.choice([LZMA1, LZMA2]), "lc": lc, "lp": random.randrange(5 - lc), "pb": random.randrange(5), "preset": preset}
        last["dict_size"] = random.choice([4096, 5000, 1 << 16])
        return format, {"filters": [*({"id": DELTA, "dist": random.randrange(1, 257)} for _ in range(random.randrange(3))), last]}

    def test_liblzma_reads_what_is_written_and_the_other_way_round(self) -> None:
        random_ = random.Random(5)
        for _ in range(300):
            data, (format, options) = data_of(random_), self.options(random_)
            one = lzma_.LZMACompressor(format, **options)
            made = b"".join(one.compress(piece) for piece in pieces(data, random_)) + one.flush()
            filters = options.get("filters")
            self.assertEqual(lzma.decompress(made, format, filters=filters), data, (format, options))
            self.assertLess(len(made), 1.3 * len(lzma.compress(data, format, **options)) + 30)
            for stream in (made, lzma.compress(data, format, **options)):
                other = lzma_.LZMADecompressor(format if filters or random_.randrange(2) else lzma.FORMAT_AUTO, filters=filters)
                self.assertEqual(in_pieces(other, stream + b"rest", random_), data)
                self.assertTrue(b"rest".startswith(other.unused_data))

    def test_large_data_have_several_chunks(self) -> None:
        random_ = random.Random(6)
        dull = random_.randbytes(40_000)
        for data in (TEXT[:40_000], dull + TEXT[:5000] + dull, bytes(2_300_000)):
            one = lzma_.LZMACompressor(preset=1)
            made = one.compress(data) + one.flush()
            self.assertEqual(lzma.decompress(made), data)
            self.assertEqual(lzma_.LZMADecompressor().decompress(made), data)
            self.assertLess(len(made), 1.15 * len(lzma.compress(data, preset=6)))

    def test_far_matches_are_forgotten(self) -> None:
        filters = [{"id": LZMA2, "dict_size": 4096, "lc": 0}]
        data = (TEXT[:3000] + bytes(400_000)) * 3
        one, other = lzma_.LZMACompressor(lzma.FORMAT_RAW, filters=filters), lzma_.LZMADecompressor(lzma.FORMAT_RAW, filters=filters)
        made = b"".join(one.compress(data[at : at + 100_000]) for at in range(0, len(data), 100_000)) + one.flush()
        self.assertEqual(lzma.decompress(made, lzma.FORMAT_RAW, filters=filters), data)
        self.assertEqual(b"".join(other.decompress(made[at : at + 50]) for at in range(0, len(made), 50)), data)

    def test_damaged_streams_are_told_as_by_liblzma(self) -> None:
        random_ = random.Random(7)
        for _ in range(1500):
            format, options = self.options(random_)
            filters = options.get("filters")
            auto = format if filters or random_.randrange(2) else lzma.FORMAT_AUTO
            data = damaged(lzma.compress(data_of(random_), format, **options), random_)
            mine, native = (said(lambda: of.LZMADecompressor(auto, filters=filters), data) for of in (lzma_, lzma))
            if "of lzip" not in str(mine[1]) and "inside of a plugin" not in str(mine[1]):
                self.assertEqual(mine, native, (auto, filters, data))

    def test_arguments_are_those_of_liblzma(self) -> None:
        chains: list[Any] = [
            [], [1], [{}], [{"id": 99}], 5, [{"id": LZMA1}], [{"id": DELTA}], [{"id": LZMA2}] * 2, [{"id": LZMA2}] * 5,
            [{"id": LZMA2, "foo": 1}],
            [{"id": LZMA2, "lc": 5}], [{"id": LZMA2, "lc": 3, "lp": 2}], [{"id": LZMA2, "dict_size": 5}],
            [{"id": LZMA2, "dict_size": 1 << 32}],
            [{"id": DELTA, "dist": 0}, {"id": LZMA2}], [{"id": DELTA, "dist": 257}, {"id": LZMA2}], [{"id": DELTA, "x": 1}, {"id": LZMA2}],
            [{"id": LZMA2, "preset": 10}], [{"id": LZMA2, "mode": 3}], [{"id": LZMA2, "mf": 1}], [{"id": LZMA2, "nice_len": 1}],
        ]  # fmt: skip
        calls: list[Callable[[Any], Any]] = [
            lambda of: of.LZMACompressor(preset=15), lambda of: of.LZMACompressor(2, preset=15), lambda of: of.LZMACompressor(0),
            lambda of: of.LZMACompressor(3), lambda of: of.LZMACompressor(2, check=4), lambda of: of.LZMACompressor(preset=1, filters=[]),
            lambda of: of.LZMACompressor(check=7), lambda of: of.LZMACompressor(check=77), lambda of: of.LZMACompressor(99),
            lambda of: of.LZMACompressor(preset=-1), lambda of: of.LZMACompressor(preset="a"), lambda of: of.LZMACompressor(check="a"),
            lambda of: of.LZMADecompressor(99), lambda of: of.LZMADecompressor(3), lambda of: of.LZMADecompressor(3, 5, [{"id": LZMA2}]),
            lambda of: of.LZMADecompressor(filters=[{"id": LZMA2}]), lambda of: of.LZMADecompressor(memlimit=-1),
            lambda of: of.LZMACompressor(2, filters=[{"id": LZMA2}]), lambda of: of.LZMADecompressor().decompress("a"),
            lambda of: [of.is_check_supported(at) for at in range(-1, 20)], lambda of: of.is_check_supported(1 << 40),
            lambda of: (one := of.LZMACompressor(), one.flush(), one.flush()),
            lambda of: (one := of.LZMACompressor(), one.flush(), one.compress(b"")),
            lambda of: of._decode_filter_properties(LZMA1, b"]\0\0\1"), lambda of: of._decode_filter_properties(LZMA1, b"\xff\0\0\1\0"),
            lambda of: list(of._decode_filter_properties(LZMA1, b"]\0\0\1\0").items()),
            lambda of: of._decode_filter_properties(LZMA2, b"\x29"),
            *(lambda of, at=at: of._decode_filter_properties(LZMA2, bytes([at])) for at in range(41)),
            *(lambda of, at=at: of._decode_filter_properties(DELTA, bytes([at])) for at in range(0, 256, 5)),
            *(lambda of, at=at: of._encode_filter_properties({"id": LZMA2, "dict_size": at * at * at * 4 + 1}) for at in range(0, 1000, 7)),
            *(lambda of, at=at: of._encode_filter_properties({"id": kind, "preset": at}) for kind in (LZMA1, LZMA2) for at in range(10)),
            lambda of: of._encode_filter_properties({"id": DELTA, "dist": 7}),
            lambda of: of._encode_filter_properties({"id": 4, "start_offset": 16}),
            lambda of: {name: getattr(of, name) for name in sorted(dir(_lzma)) if name.isupper()},
        ]  # fmt: skip
        for chain in chains:
            calls += [partial(lambda chain, of: of.LZMACompressor(filters=chain), chain)]
            calls += [partial(lambda chain, of: of.LZMADecompressor(3, None, chain), chain)]
        for at, call in enumerate(calls):
            mine, native = error_of(call, lzma_), error_of(call, _lzma)
            if not hasattr(native, "compress") and not hasattr(native, "decompress"):
                self.assertEqual(mine, native, at)
            else:
                self.assertEqual(type(mine).__name__, type(native).__name__, (at, mine, native))

    def test_memory_is_limited(self) -> None:
        for format, preset in ((lzma.FORMAT_XZ, 0), (lzma.FORMAT_XZ, 6), (lzma.FORMAT_ALONE, 1)):
            data = lzma.compress(b"a" * 99, format, preset=preset)
            size = 1 << lzma_options.DICTS[preset]
            self.assertEqual(lzma_.LZMADecompressor(memlimit=size + 70_000).decompress(data), b"a" * 99)
            for of in (lzma, lzma_):
                with self.assertRaisesRegex(of.LZMAError, "Memory usage limit exceeded"):
                    of.LZMADecompressor(memlimit=size + 60_000).decompress(data)

    def test_what_is_not_there_says_so(self) -> None:
        for of in (
            lambda: lzma_.LZMACompressor(filters=[{"id": lzma.FILTER_X86}, {"id": LZMA2}]),
            lambda: lzma_.LZMADecompressor().decompress(lzma.compress(b"a" * 99, filters=[{"id": lzma.FILTER_ARM}, {"id": LZMA2}])),
            lambda: lzma_.LZMADecompressor().decompress(b"LZIP"),
        ):
            with self.assertRaisesRegex(lzma_.LZMAError, "inside of a plugin"):
                of()


ABOVE = """
import io, sys
from wharf_compat.absent import bz2_, lzma_, lzma_options
sys.modules.update(_bz2=bz2_, _lzma=lzma_)
import bz2, lzma, codecs, tarfile, zipfile
assert bz2.BZ2Compressor is bz2_.BZ2Compressor and lzma.LZMACompressor is lzma_.LZMACompressor
where, text = sys.argv[1], open(__import__("os").__file__, "rb").read()[:10_000]
for kind in ("bz2", "xz"):
    with tarfile.open(f"{where}/a.tar.{kind}", f"w:{kind}") as file:
        one = tarfile.TarInfo("t"); one.size = len(text); file.addfile(one, io.BytesIO(text))
    with tarfile.open(f"{where}/native.tar.{kind}") as file:
        assert file.extractfile("t").read() == text
with zipfile.ZipFile(f"{where}/a.zip", "w") as file:
    file.writestr("b", text, zipfile.ZIP_BZIP2); file.writestr("l", text, zipfile.ZIP_LZMA)
with zipfile.ZipFile(f"{where}/native.zip") as file:
    assert file.read("b") == file.read("l") == text
for of, error in ((bz2, ValueError), (lzma, lzma.LZMAError)):
    made = of.compress(text)
    assert of.decompress(made + made) == text + text == of.decompress(made + of.compress(text) + b"garbage")
    file = of.open(io.BytesIO(made + made)); file.seek(8_000)
    assert file.read(5_000) == (text + text)[8_000:13_000] and file.tell() == 13_000
    try: of.decompress(made[:-3])
    except error as problem: print(problem)
    try: of.open(io.BytesIO(made[:-3])).read()
    except EOFError as problem: print(problem)
assert codecs.decode(codecs.encode(text, "bz2"), "bz2") == text
"""


class Above(unittest.TestCase):
    def test_pythons_modules_work_on_top(self) -> None:
        text = Path(io.__file__).with_name("os.py").read_bytes()[:10_000]
        with tempfile.TemporaryDirectory() as folder:
            for kind in ("bz2", "xz"):
                with tarfile.open(f"{folder}/native.tar.{kind}", f"w:{kind}") as file:  # type: ignore[call-overload]
                    one = tarfile.TarInfo("t")
                    one.size = len(text)
                    file.addfile(one, io.BytesIO(text))
            with zipfile.ZipFile(f"{folder}/native.zip", "w") as archive:
                archive.writestr("b", text, zipfile.ZIP_BZIP2)
                archive.writestr("l", text, zipfile.ZIP_LZMA)
            done = subprocess.run([sys.executable, "-c", ABOVE, folder], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr, done.stdout.count("end-of-stream marker was reached")), (0, "", 4))
            for kind in ("bz2", "xz"):
                with tarfile.open(f"{folder}/a.tar.{kind}") as file:
                    found = file.extractfile("t")
                    assert found is not None
                    self.assertEqual(found.read(), text)
            with zipfile.ZipFile(f"{folder}/a.zip") as archive:
                self.assertEqual((archive.read("b"), archive.read("l")), (text, text))


if __name__ == "__main__":
    unittest.main()
