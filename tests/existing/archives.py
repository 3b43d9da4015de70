"""Expressions about archives, as in expressions.py: their modules are compiled in Python, and plain Python in a plugin."""

ARCHIVES = r"""
import bz2; bz2.decompress(bz2.compress(b"abc"))
import lzma; lzma.decompress(lzma.compress(b"abc"))
import tarfile; tarfile.open("nothing.tar.bz2")
import bz2; bz2.compress(b"abc"), bz2.compress(b""), bz2.compress(b"to be or not to be, " * 99 + b"that", 1), bz2.compress(bytes(range(256)), 5)
import bz2; d = bz2.BZ2Decompressor(); d.decompress(bz2.compress(b"abcdef") + b"rest", max_length=4), d.eof, d.needs_input, d.decompress(b""), d.eof, d.unused_data
import bz2; bz2.decompress(b"BZh91AY&SY" + b"0" * 40)
import bz2; bz2.decompress(bz2.compress(b"abc")[:-4])
import bz2; bz2.compress(b"a", 0)
import bz2, io; f = bz2.open(io.BytesIO(bz2.compress(b"one\n" * 9) + bz2.compress(b"two\n")), "rt"); f.readlines()[7:], bz2.BZ2File(io.BytesIO()).read()
import bz2; bz2.BZ2Decompressor().decompress(b"xx")
import bz2; d = bz2.BZ2Decompressor(); d.decompress(bz2.compress(b"")); d.decompress(b"x")
import lzma; lzma.decompress(bytes.fromhex("fd377a585a000004e6d6b4460200210116000000742fe5a301000261626300002776271a4a09d82c00011b030b2fb9101fb6f37d010000000004595a"))
import lzma; z = bytes.fromhex("5d00008000ffffffffffffffff00341949ee8def8c87327f5db7ffffbc640000"); lzma.decompress(z), lzma.decompress(z, lzma.FORMAT_ALONE), lzma.decompress(z[:-9])
import lzma; [lzma.decompress(lzma.compress(b"to be or not to be, " * 99, f, preset=p)) == b"to be or not to be, " * 99 for f in (1, 2) for p in (0, 6, 9)]
import lzma; c = lzma.LZMACompressor(check=lzma.CHECK_SHA256); z = c.compress(b"x" * 5000) + c.flush(); d = lzma.LZMADecompressor(); len(d.decompress(z)), d.check, d.eof, len(z) < 200
import lzma; f = [{"id": lzma.FILTER_DELTA, "dist": 4}, {"id": lzma.FILTER_LZMA2, "preset": 3}]; lzma.decompress(lzma.compress(bytes(range(99)), 3, filters=f), 3, filters=f)[:5]
import lzma; lzma.decompress(b"no such format, of course")
import lzma; lzma.decompress(lzma.compress(b"abc")[:-9])
import lzma; z = bytearray(lzma.compress(b"abc" * 50)); z[30] ^= 1; lzma.decompress(z)
import lzma; lzma.decompress(lzma.compress(b"abc"), memlimit=99999)
import lzma; lzma.compress(b"abc", preset=12)
import lzma; lzma.is_check_supported(4), lzma._decode_filter_properties(lzma.FILTER_LZMA2, b"\x16"), lzma._encode_filter_properties({"id": lzma.FILTER_LZMA1, "preset": 9})
import lzma; lzma.compress(b"abc", filters=[{"id": lzma.FILTER_X86}, {"id": lzma.FILTER_LZMA2}]) is None
import lzma, io; f = lzma.open(io.BytesIO(lzma.compress(b"one\n" * 99999)), "rb"); f.seek(300000), f.read(5), f.readline(), f.tell()
import tarfile, io; f = io.BytesIO(); t = tarfile.open(fileobj=f, mode="w:bz2"); i = tarfile.TarInfo("a"); i.size = 3; t.addfile(i, io.BytesIO(b"abc")); t.close(); f.seek(0); tarfile.open(fileobj=f).extractfile("a").read(), len(f.getvalue())
import tarfile, io; f = io.BytesIO(); t = tarfile.open(fileobj=f, mode="w:xz"); i = tarfile.TarInfo("a"); i.size = 3; t.addfile(i, io.BytesIO(b"abc")); t.close(); f.seek(0); tarfile.open(fileobj=f).extractfile("a").read()
import zipfile, io; f = io.BytesIO(); z = zipfile.ZipFile(f, "w", zipfile.ZIP_BZIP2); z.writestr("a", "b" * 99); z.writestr("l", "c" * 99, zipfile.ZIP_LZMA); z.close(); r = zipfile.ZipFile(f); r.read("a"), r.read("l"), r.testzip()
import shutil, os, tarfile; os.makedirs(FOLDER + "/arc/in", exist_ok=True); open(FOLDER + "/arc/in/x", "w").write("x" * 99); [sorted(tarfile.open(shutil.make_archive(FOLDER + "/arc/made", k, FOLDER + "/arc/in")).getnames()) for k in ("bztar", "xztar")]
import shutil, os; os.makedirs(FOLDER + "/arc/in2", exist_ok=True); open(FOLDER + "/arc/in2/x", "w").write("x" * 99); shutil.unpack_archive(shutil.make_archive(FOLDER + "/arc/m2", "xztar", FOLDER + "/arc/in2"), FOLDER + "/arc/out"); open(FOLDER + "/arc/out/x").read()
import shutil; [one[0] for one in shutil.get_archive_formats() if one[0] != "zstdtar"], [one[:2] for one in shutil.get_unpack_formats() if one[0] != "zstdtar"]
import codecs; codecs.encode(b"aaaaa", "bz2"), codecs.decode(codecs.encode(b"a" * 50, "bz2"), "bz2")
import tarfile, io; tarfile.open(fileobj=io.BytesIO(), mode="w:xz")
import zipfile, io; zipfile.ZipFile(io.BytesIO(), "w", zipfile.ZIP_BZIP2)
import codecs; codecs.encode(b"a", "bz2")
"""
