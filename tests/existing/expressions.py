"""Expressions whose values are compared between Python and a plugin: those that are likely to differ, and combinations, by a generator that
always makes the same. Statements may stand before an expression. BASE is the address of a server that answers what it was asked, FOLDER
the folder that is open."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from pathlib import Path

from archives import ARCHIVES

SEED = 20261129
LINES = r"""
import hashlib; [hashlib.new(one, b"abc").hexdigest() for one in ("md5", "sha1", "sha224", "sha256", "sha384", "sha512", "sha3_256", "blake2b", "blake2s")]
import hashlib; hashlib.new("sha512_256", b"abc").hexdigest()
import hashlib; hashlib.new("sha512_224", b"abc" * 100).hexdigest()
import hashlib; hashlib.new("sha512_256", b"").digest_size, hashlib.new("sha512_256").block_size, hashlib.new("sha512_256").name
import hashlib; one = hashlib.new("sha512_256", b"a"); two = one.copy(); two.update(b"b" * 300); one.hexdigest(), two.hexdigest()
import hashlib; hashlib.new("SHA256", b"abc").hexdigest()
import hashlib; hashlib.new("sha-256", b"abc").hexdigest()
import hashlib; hashlib.new("sha3-512", b"abc").hexdigest()
import hashlib; hashlib.new("SHA512-256", b"abc").hexdigest()
import hashlib; hashlib.new("md5-sha1", b"abc").hexdigest()
import hashlib; hashlib.new("ripemd160", b"abc").hexdigest()
import hashlib; hashlib.new("sm3", b"abc").hexdigest()
import hashlib; hashlib.new("nothing", b"abc")
import hashlib; hashlib.new("shake_128", b"abc").hexdigest(9)
import hashlib; hashlib.md5(b"x", usedforsecurity=False).hexdigest()
import hashlib; hashlib.blake2b(b"x", digest_size=20, key=b"k", salt=b"s", person=b"p").hexdigest()
import hashlib; sorted(hashlib.algorithms_guaranteed)
import hashlib; {"sha512_256", "md5", "sha3_384"} <= hashlib.algorithms_available
import hashlib, io; hashlib.file_digest(io.BytesIO(b"abc" * 1000), "sha256").hexdigest()
import hashlib; hashlib.pbkdf2_hmac("sha256", b"password", b"salt", 100).hex()
import hashlib; hashlib.pbkdf2_hmac("sha512", b"password", b"salt", 10, 100).hex()
import hashlib; hashlib.pbkdf2_hmac("sha1", bytearray(b"p"), memoryview(b"s"), 3, dklen=7).hex()
import hashlib; hashlib.pbkdf2_hmac("sha256", b"p", b"s", 0)
import hashlib; hashlib.pbkdf2_hmac("sha256", b"p", b"s", 1, 0)
import hashlib; hashlib.pbkdf2_hmac("sha256", "p", b"s", 1)
import hashlib; hashlib.pbkdf2_hmac(hash_name="sha384", password=b"p", salt=b"", iterations=2).hex()
import hashlib; hashlib.pbkdf2_hmac("sha512_256", b"p", b"s", 2).hex()
import hashlib; hashlib.scrypt(b"p", salt=b"s", n=16, r=1, p=1).hex()
import hashlib; hashlib.scrypt(b"p", salt=b"s", n=64, r=8, p=2, dklen=32).hex()
import hashlib; hashlib.scrypt(b"p", salt=b"s", n=15, r=1, p=1)
import hashlib; hashlib.scrypt(b"p", salt=b"s", n=16, r=0, p=1)
import hashlib; hashlib.scrypt(b"p", salt=b"s", n=16, r=1, p=1, dklen=0)
import hashlib; hashlib.scrypt("p", salt=b"s", n=16, r=1, p=1)
import hashlib; hashlib.scrypt(b"p", n=16, r=1, p=1)
import hashlib; hashlib.scrypt(b"p", salt=b"s", n=2**20, r=8, p=1)
import hashlib; len(hashlib.scrypt(b"p", salt=b"s", n=2**14, r=8, p=1))
import hmac; hmac.new(b"key", b"text", "sha256").hexdigest(), hmac.digest(b"key", b"text", "sha1").hex()
import hmac; hmac.new(b"key", b"text", "sha512_256").hexdigest()
import hmac, hashlib; hmac.new(b"k" * 200, b"text", hashlib.sha3_256).hexdigest()
import hmac; hmac.new(b"key", b"text")
import hmac; hmac.compare_digest("a", "a"), hmac.compare_digest(b"a", b"b")
import hmac; hmac.new(b"key", b"text", "nothing")
import hmac; hmac.compare_digest("ä", "ä")
import zlib; zlib.crc32(b"abc"), zlib.adler32(b"abc"), zlib.decompress(zlib.compress(b"abc" * 50, 9))
import gzip; gzip.decompress(gzip.compress(b"abc", mtime=0)), gzip.compress(b"abc", mtime=0)[:8]
import zipfile, io; f = io.BytesIO(); z = zipfile.ZipFile(f, "w", zipfile.ZIP_DEFLATED); z.writestr("a", "b" * 99); z.close(); zipfile.ZipFile(f).read("a")
import random; random.seed(7); random.random(), random.randint(1, 1000), random.sample(range(50), 5), random.gauss(0, 1)
import random; random.Random("text").getrandbits(100), random.Random(2**70).choices("abc", k=5)
import uuid; uuid.uuid5(uuid.NAMESPACE_DNS, "example.com"), uuid.uuid3(uuid.NAMESPACE_URL, "x"), uuid.UUID(int=7).urn
import uuid; uuid.uuid4().version, len({uuid.uuid4() for _ in range(20)}), uuid.uuid1().version
import secrets; len(secrets.token_bytes()), len(secrets.token_hex(5)), secrets.compare_digest("a", "a")
import struct; struct.pack("<qIhb", -2**60, 2**32 - 1, -3, 4), struct.calcsize("<lq"), struct.pack(">d", 1.1)
import array; array.array("q", [2**60]).tobytes(), array.array("d", [0.1]).tobytes()
import pickle; pickle.loads(pickle.dumps({"a": [1, 2.5, None, b"x", {3}]}))
import decimal; decimal.Decimal("1.10") * 3, decimal.Decimal(1) / 3, decimal.Decimal(2).sqrt(), decimal.Decimal("1e-7")
import decimal; decimal.getcontext().prec, decimal.getcontext().rounding, decimal.Decimal("0.1").quantize(decimal.Decimal("1"))
import decimal; decimal.Decimal(1.1), decimal.Decimal("NaN").is_nan(), decimal.Decimal("12345.678").__format__(",.2f"), f"{decimal.Decimal('1234567.891'):,.1f}"
import decimal; decimal.Decimal(1) / 0
import decimal; decimal.Decimal("x")
import decimal; decimal.localcontext().__enter__().prec, decimal.Decimal("1.25").as_integer_ratio(), hash(decimal.Decimal("1.5")) == hash(1.5)
import decimal; decimal.Decimal(2) ** decimal.Decimal("0.5"), decimal.Decimal("10").ln(), decimal.Decimal("2").exp(), decimal.Decimal("1E+3").normalize()
import fractions; fractions.Fraction("1.5") + fractions.Fraction(1, 3), fractions.Fraction(0.1).limit_denominator(100)
import math; math.comb(50, 25), math.sqrt(2), math.exp(1), math.gamma(5.5), math.fsum([0.1] * 10), math.sin(1e22), math.log(2), math.pow(2, 0.5), math.tan(1.5), math.erf(0.5)
import cmath; cmath.sqrt(-1), cmath.exp(1j), cmath.polar(3 + 4j)
import statistics; statistics.mean([1, 2, 4]), statistics.stdev([1, 2, 4]), statistics.quantiles([1, 2, 3, 4]), statistics.NormalDist(0, 1).cdf(1)
0.1 + 0.2, 1e16, 1e-5, float("1e400"), round(2.675, 2), 2**0.5, 1 / 3, 5e-324, float.hex(0.1), (0.1).as_integer_ratio()
"%.3f %e %g" % (1.0005, 12345.678, 1e-10), f"{1234567.891:,.2f} {0.00001:g} {255:#x} {3.7:.0f}", format(12.5, "08.2f"), f"{1e10:n}"
int("9" * 4400)
"ß".upper(), "İ".lower(), "ǅ".title(), "ﬁ".casefold(), "ÀÉ".encode("unicode_escape"), "é".encode("latin-1"), "straße".center(12, "·")
import unicodedata; unicodedata.normalize("NFKD", "ﬁé½"), unicodedata.name("€"), unicodedata.category("\u200b"), unicodedata.east_asian_width("世"), unicodedata.lookup("SNOWMAN")
"a b\u2028c\x1cd".split(), "a\u2028b\x0bc\r\nd".splitlines(), "١٢".isdigit(), int("١٢"), "²".isdigit(), "Ⅷ".isnumeric()
"é".encode("cp1252"), b"\x80".decode("cp1252"), "ж".encode("koi8_r"), "日本".encode("shift_jis"), "한".encode("euc_kr"), "é".encode("utf-16"), "a".encode("utf-32-le")
"中".encode("gb18030"), b"\xff\xfea\0".decode("utf-16"), "bücher.example".encode("idna"), b"xn--bcher-kva".decode("idna"), "ü".encode("punycode")
"x".encode("nothing"), 1
import codecs; codecs.encode("abc", "rot13"), codecs.lookup("latin1").name, codecs.decode(b"4142", "hex"), codecs.encode(b"abc", "base64")
import codecs; codecs.decode(codecs.encode(b"a" * 50, "zlib"), "zlib"), codecs.encode(b"a=", "quopri")
import base64; base64.b85encode(b"abc"), base64.b32encode(b"abc"), base64.urlsafe_b64decode("-_8="), base64.a85encode(b"abc")
import time; time.strftime("%Y-%m-%d %H:%M:%S %j %U %w %a %A %b %B %p %I", time.gmtime(86400 * 365)), time.gmtime(0), time.localtime(0)
import time; time.strftime("%Z %z", time.localtime(0)), time.tzname, time.timezone, time.daylight, time.mktime(time.localtime(10**9))
import time; time.strptime("30 Nov 00", "%d %b %y"), time.asctime(time.gmtime(0)), time.ctime(0)
import time; [type(one()).__name__ for one in (time.time, time.monotonic, time.perf_counter, time.process_time, time.time_ns)]
import time; time.tzset()
import time; before = time.monotonic(); time.sleep(0.02); 0.015 < time.monotonic() - before < 3
import time; time.thread_time() >= 0
import time; time.clock_gettime(time.CLOCK_REALTIME) > 1.7e9
import datetime as d; d.datetime.fromtimestamp(0), d.datetime.fromtimestamp(2**33, d.timezone.utc), d.datetime(2024, 7, 1).timestamp(), d.date.fromtimestamp(10**9)
import datetime as d; d.datetime(2024, 7, 1, 12, tzinfo=d.timezone.utc).astimezone().isoformat(), d.datetime(2024, 7, 1).astimezone().tzname()
import datetime as d; d.datetime.strptime("2024-02-29T23:59:59.123456+0530", "%Y-%m-%dT%H:%M:%S.%f%z").isoformat(), d.datetime.strptime("Fri 1 Mar 2024", "%a %d %b %Y")
import datetime as d; d.date(2024, 3, 1).strftime("%A %d %B %Y %G-%V %e %-d %y %%"), d.datetime(999, 1, 1).strftime("%Y"), d.time(1, 2, 3, 4).strftime("%f %H")
import datetime as d; d.datetime(2024, 1, 1).strftime("%c | %x | %X | %D | %F | %T | %R | %s")
import datetime as d; d.datetime.fromisoformat("2024-W05-3"), d.datetime.fromisoformat("20240101T000000Z"), d.timedelta(days=1.5) // d.timedelta(hours=7)
import datetime as d; d.datetime(2024, 1, 1).strftime("%-H %k %l %P %h %n %t %u %C %g")
import datetime as d; d.datetime.fromtimestamp(-1), d.datetime.fromtimestamp(1e11)
import zoneinfo; zoneinfo.ZoneInfo("Mars/Phobos")
import zoneinfo; zoneinfo.ZoneInfo("Europe/Paris"), zoneinfo.ZoneInfo("Europe/Paris") is zoneinfo.ZoneInfo("Europe/Paris"), zoneinfo.ZoneInfo.no_cache("UTC")
import zoneinfo; {"Europe/Paris", "America/New_York", "UTC", "Asia/Kolkata"} <= zoneinfo.available_timezones(), len(zoneinfo.available_timezones()) > 500
import zoneinfo; zoneinfo.ZoneInfo("../etc/passwd")
import zoneinfo; zoneinfo.ZoneInfo("europe/paris").key.lower()
import calendar; calendar.month(2024, 2), calendar.day_name[0], calendar.isleap(2000), calendar.timegm((1970, 1, 2, 0, 0, 0))
import locale; locale.setlocale(locale.LC_ALL, "C"), locale.getlocale()
import locale; locale.setlocale(locale.LC_ALL, "xx_NO.UTF-8")
import locale; locale.setlocale(locale.LC_ALL, "")
import locale; locale.localeconv()["decimal_point"], locale.localeconv()["thousands_sep"], locale.format_string("%.2f", 1234567.891, grouping=True)
import locale; locale.currency(5)
import locale; locale.getpreferredencoding(), locale.strcoll("a", "B") > 0, locale.strxfrm("b") > locale.strxfrm("a"), locale.atof("1.5")
import locale; locale.setlocale(locale.LC_TIME, "de_DE.UTF-8")
import locale; locale.nl_langinfo(locale.RADIXCHAR), locale.nl_langinfo(locale.DAY_1), locale.nl_langinfo(locale.CODESET)
import sys; sys.getdefaultencoding(), sys.getfilesystemencoding(), sys.byteorder, sys.implementation.name, sys.float_info.max, sys.maxunicode
import sys; sys.getrecursionlimit() >= 500, isinstance(sys.argv, list), sys.flags.optimize, sys.stdout.encoding
exec("def f(n): return f(n + 1)"); f(0)
import sys; sys.exit(3)
import os; os.environ["GIVEN"], os.environ.get("NOT_GIVEN"), os.getenv("NOT_GIVEN", "d"), "NOT_GIVEN" in os.environ
import os; os.environ["NOT_GIVEN"]
import os; os.environ["NEW"] = "x"; os.environ["NEW"], os.getenv("NEW"), os.environ.pop("NEW"), os.environb.get(b"NEW") if hasattr(os, "environb") else None
import os; os.environ.copy()["GIVEN"], {**os.environ}["GIVEN"], dict(os.environ)["GIVEN"], [v for k, v in os.environ.items() if k == "GIVEN"]
import os; os.path.expandvars("$GIVEN/x ${GIVEN} $NOPE"), os.path.expanduser("~") == os.environ["HOME"], os.path.expanduser("~nobody_there")
import os, pathlib; pathlib.Path.home() == pathlib.Path(os.environ["HOME"]), os.path.isdir(pathlib.Path.home())
import os; os.nothing_such
import os; os.spawnlp(os.P_WAIT, "true", "true")
import os; os.posix_spawn("/bin/true", ["true"], {})
import os; os.kill(os.getpid(), 0)
import os; os.system("true")
import os; os.popen("echo hi").read()
import os; os.cpu_count() is None or os.cpu_count() > 0, os.getpid() > 0, os.sep, os.linesep, os.name, os.curdir, os.devnull
import os; os.getlogin() and 1
import os; os.uname().sysname and 1
import os; os.umask(0o22) and 1
import os; os.getloadavg() and 1
import os; os.sched_getaffinity(0) and 1
import os; os.process_cpu_count() and 1
import os; os.get_terminal_size()
import os, shutil; shutil.get_terminal_size()
import shutil; shutil.which("no-such-program"), shutil.disk_usage(FOLDER).total > 0
import os; os.urandom(4) != os.urandom(4), len(os.urandom(9)), os.fspath("a"), os.path.abspath("/a/../b")
import os; os.pipe()
import os; os.isatty(0), os.isatty(1)
import os; os.times() and 1
import os; os.getpgrp() and 1
import getpass; getpass.getuser() and 1
import pwd; pwd.getpwuid(0).pw_name
import grp; grp.getgrgid(0).gr_name
import resource; resource.getrusage(resource.RUSAGE_SELF) and 1
import platform; isinstance(platform.platform(), str), platform.python_implementation(), isinstance(platform.node(), str), isinstance(platform.machine(), str)
import platform; platform.python_version_tuple()[0], platform.architecture()[0] in ("32bit", "64bit"), isinstance(platform.uname().system, str)
import platform; platform.libc_ver() and 1
import subprocess; subprocess.run(["true"]).returncode
import subprocess; subprocess.check_output("echo hi", shell=True)
import subprocess; subprocess.run(["no-such-program"])
import subprocess; subprocess.getoutput("echo hi")
import subprocess; subprocess.getstatusoutput("echo hi")
import multiprocessing; multiprocessing.cpu_count() > 0
import multiprocessing.pool; multiprocessing.pool.ThreadPool(2).map(abs, [1, -2])
import signal; signal.signal(signal.SIGTERM, signal.SIG_DFL) is not None
import signal; signal.SIGINT, signal.Signals(15).name, signal.getsignal(signal.SIGTERM) is not None
import signal; signal.alarm(0)
import signal; signal.setitimer(signal.ITIMER_REAL, 0)
import signal; signal.raise_signal(0)
import socket; socket.inet_aton("1.2.3.4"), socket.inet_ntoa(b"\x7f\0\0\1"), socket.htons(80), socket.inet_pton(socket.AF_INET6, "::1")
import socket; [(a.name, b.name, *rest) for a, b, *rest in socket.getaddrinfo("127.0.0.1", 80, type=socket.SOCK_STREAM)]
import socket; [(a.name, b.name, *rest) for a, b, *rest in socket.getaddrinfo("::1", "443", proto=socket.IPPROTO_TCP)]
import socket; socket.getaddrinfo("no.address", 80, flags=socket.AI_NUMERICHOST)
import socket; socket.gethostbyname("127.0.0.1"), socket.gethostbyname("localhost"), isinstance(socket.gethostname(), str)
import socket; socket.gethostbyname_ex("10.1.2.3")
import socket; socket.gethostbyaddr("127.0.0.1") and 1
import socket; socket.getnameinfo(("127.0.0.1", 80), socket.NI_NUMERICHOST | socket.NI_NUMERICSERV)
import socket; socket.getservbyname("https")
import socket; socket.create_connection(("127.0.0.1", 9), timeout=1)
import socket; socket.socket().connect(("127.0.0.1", 9))
import socket; socket.socket().bind(("127.0.0.1", 0))
import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", 9))
import socket; socket.socketpair() and 1
import socket; socket.socket().settimeout(1), socket.getdefaulttimeout()
import socket; socket.socket().getsockname() and 1
import socket; socket.socket().recv(1)
import socket; socket.has_ipv6 in (True, False), socket.AF_UNIX and 1
import socket; socket.if_nameindex() and 1
import select; select.select([], [], [], 0)
import select; select.poll() and 1
import selectors; selectors.DefaultSelector() and 1
import ssl; ssl.create_default_context().verify_mode, ssl.create_default_context().check_hostname
import ssl; ssl.DER_cert_to_PEM_cert(bytes(100))
import ssl; ssl.PEM_cert_to_DER_cert(ssl.DER_cert_to_PEM_cert(bytes(range(200)))) == bytes(range(200))
import ssl; ssl.PEM_cert_to_DER_cert("no")
import ssl; ssl.cert_time_to_seconds("Jan  5 09:34:43 2018 GMT")
import ssl; ssl.create_default_context().load_cert_chain("no-such-file.pem")
import ssl; ssl.create_default_context(cafile="no-such-file.pem")
import ssl; ssl.create_default_context().load_verify_locations(cafile="no-such-file.pem")
import ssl; ssl.create_default_context().set_ciphers("NOTHING")
import ssl; len(ssl.create_default_context().get_ciphers()) > 3
import ssl; len(ssl.RAND_bytes(5))
import ssl; ssl.get_server_certificate(("127.0.0.1", 9))
import ssl; issubclass(ssl.SSLError, OSError), issubclass(ssl.SSLCertVerificationError, ValueError), ssl.Purpose.SERVER_AUTH.name
import ssl; context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT); context.check_hostname = False; context.verify_mode = ssl.CERT_NONE; context.verify_mode
import ssl; context = ssl.create_default_context(); context.verify_mode = ssl.CERT_NONE
import ssl; ssl.create_default_context().minimum_version >= ssl.TLSVersion.TLSv1_2, ssl.HAS_SNI, ssl.OPENSSL_VERSION.split()[0]
import ssl; ssl.nothing_such
import fcntl; fcntl.flock(1, fcntl.LOCK_EX)
import fcntl; fcntl.ioctl(0, 0)
import termios; termios.tcgetattr(0)
import tty; tty.setraw(0)
import syslog; syslog.syslog("x")
import readline; readline.get_history_length()
import tkinter; tkinter.Tk()
import mmap; f = open(FOLDER + "/m", "w+b"); f.write(b"hello\nworld"); f.flush(); m = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ); m[:5], m[0], len(m), m.find(b"w"), m.readline(), m.read(2), m.tell(), m.closed
import mmap; f = open(FOLDER + "/m", "w+b"); f.write(b"hello"); f.flush(); m = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ); m.close(); m.closed, m.size()
import mmap; m = mmap.mmap(-1, 10); m.write(b"abc"); m.seek(0); m.read(4)
import mmap; f = open(FOLDER + "/m", "w+b"); f.write(b"hello"); f.flush(); m = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ); m[0] = 1
import mmap, re; f = open(FOLDER + "/m", "w+b"); f.write(b"hello"); f.flush(); re.search(b"l+", mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)).group()
import mmap; f = open(FOLDER + "/m", "w+b"); f.write(b"hello"); f.flush(); mmap.mmap(f.fileno(), 0)
import ctypes; ctypes.sizeof(ctypes.c_int), ctypes.sizeof(ctypes.c_int64), ctypes.sizeof(ctypes.c_char * 7)
import ctypes; exec("class P(ctypes.Structure):\n  _fields_ = [('a', ctypes.c_int), ('b', ctypes.c_int)]"); ctypes.sizeof(P)
import ctypes; ctypes.c_int(5).value
import ctypes; ctypes.CDLL(None) and 1
import ctypes.util; ctypes.util.find_library("no-such-library")
import ctypes; ctypes.cdll.LoadLibrary("x")
import ctypes; ctypes.create_string_buffer(3).raw
import sqlite3; c = sqlite3.connect(":memory:"); c.execute("create table t(a, b)"); c.execute("insert into t values (?, ?)", (1, "é")); c.execute("select * from t").fetchall()
import sqlite3; sqlite3.connect(":memory:").execute("select sqrt(2), json('[1]'), upper('a'), 5 % 3, date('2024-01-31', '+1 month')").fetchall()
import sqlite3; sqlite3.connect(FOLDER + "/db.sqlite").execute("select 1").fetchall()
import sqlite3; sqlite3.connect(":memory:").execute("selec")
import threading; r = []; t = threading.Thread(target=lambda: r.append("ran")); t.start(); t.join(); r
import threading; r = []; t = threading.Thread(target=lambda: r.append("ran"), daemon=True); t.start(); t.join(); r
import threading; r = []; t = threading.Timer(0.01, lambda: r.append("t")); t.start(); t.join(); r
import threading; threading.current_thread() is threading.main_thread(), threading.active_count() > 0, threading.get_ident() != 0
import threading; lock = threading.Lock(); lock.acquire(), lock.acquire(False), lock.acquire(timeout=0.01), lock.locked(), lock.release()
import threading; r = threading.RLock(); r.acquire(), r.acquire(), r.release(), r.release()
import threading; threading.Lock().release()
import threading; e = threading.Event(); e.wait(0.01), e.set(), e.wait(), e.is_set()
import threading; s = threading.Semaphore(1); s.acquire(), s.acquire(blocking=False), s.acquire(timeout=0.01), s.release()
import threading; threading.BoundedSemaphore(1).release()
import threading; b = threading.Barrier(1); b.wait()
import threading; threading.Barrier(2, timeout=0.01).wait()
import threading; l = threading.local(); l.x = 1; l.x, hasattr(l, "y")
import threading; threading.Thread(target=1).is_alive(), threading.Thread(name="n").name, threading.Thread(daemon=True).daemon
import threading; threading.Thread().join()
import _thread; _thread.start_new_thread(abs, (1,)) and 1
import queue; q = queue.Queue(1); q.put(1), q.full(), q.get(), q.empty()
import queue; queue.Queue().get(timeout=0.01)
import queue; queue.Queue().get_nowait()
import queue; queue.SimpleQueue().get(timeout=0.01)
import queue; q = queue.SimpleQueue(); q.put(1); q.get(), q.empty()
import queue; q = queue.PriorityQueue(); q.put(2); q.put(1); q.get(), q.qsize(), q.task_done()
import queue; q = queue.Queue(1); q.put(1); q.put(2, timeout=0.01)
from concurrent.futures import *; list(ThreadPoolExecutor(2).map(lambda x, y: x * y, [1, 2, 3], [4, 5]))
from concurrent.futures import *; ThreadPoolExecutor(0)
from concurrent.futures import *; e = ThreadPoolExecutor(); e.shutdown(); e.submit(print)
from concurrent.futures import *; e = ThreadPoolExecutor(initializer=lambda: r.append("i"), max_workers=1); r = []; e.submit(r.append, 1).result(), e.submit(r.append, 2).result(), r
from concurrent.futures import *; f = ThreadPoolExecutor(1).submit(int, "x"); type(f.exception()).__name__, f.done(), f.running(), f.cancelled(), f.cancel()
from concurrent.futures import *; ThreadPoolExecutor(1).submit(int, "x").result()
from concurrent.futures import *; sorted(f.result() for f in as_completed([ThreadPoolExecutor(1).submit(pow, n, 2) for n in (3, 1, 2)]))
from concurrent.futures import *; e = ThreadPoolExecutor(2); fs = [e.submit(abs, -n) for n in range(3)]; d = wait(fs); len(d.done), len(d.not_done)
from concurrent.futures import *; e = ThreadPoolExecutor(2); it = e.map(int, ["1", "x", "3"]); next(it)
from concurrent.futures import *; list(ThreadPoolExecutor(2).map(int, ["1", "x"]))
from concurrent.futures import *; r = []; f = ThreadPoolExecutor(1).submit(abs, -1); f.add_done_callback(lambda f: r.append(f.result())); f.result(), r
from concurrent.futures import *; import sys; type(ThreadPoolExecutor(1).submit(sys.exit, 3).exception()).__name__
from concurrent.futures import *; import threading; ThreadPoolExecutor(1, thread_name_prefix="p").submit(lambda: (threading.current_thread().name, threading.current_thread() is threading.main_thread())).result()
from concurrent.futures import *; import contextvars; v = contextvars.ContextVar("v", default=0); v.set(5); ThreadPoolExecutor(1).submit(v.get).result()
from concurrent.futures import *; import asyncio; ThreadPoolExecutor(1).submit(asyncio.get_running_loop).result()
from concurrent.futures import *; import asyncio; ThreadPoolExecutor(1).submit(lambda: asyncio.run(asyncio.sleep(0, "ran"))).result()
from concurrent.futures import *; Future().result(timeout=0.01)
from concurrent.futures import *; isinstance(ThreadPoolExecutor(1), Executor), ThreadPoolExecutor(3)._max_workers, issubclass(ThreadPoolExecutor, Executor)
from concurrent.futures import *; exec("with ThreadPoolExecutor(2) as e: f = e.submit(abs, -1)"); f.result(), e._shutdown
from concurrent.futures.thread import ThreadPoolExecutor as T; T(1).submit(abs, -3).result()
import asyncio; asyncio.run(asyncio.sleep(0, 1))
import asyncio; asyncio.get_running_loop().run_until_complete(asyncio.sleep(0))
import asyncio; asyncio.to_thread(lambda: "from thread")
import asyncio; asyncio.get_running_loop().run_in_executor(None, abs, -1)
import asyncio; asyncio.to_thread(asyncio.get_running_loop)
import asyncio; asyncio.to_thread(asyncio.run, asyncio.sleep(0, "nested"))
import asyncio, contextvars; v = contextvars.ContextVar("v"); v.set(1); asyncio.to_thread(v.get)
import asyncio; from concurrent.futures import ThreadPoolExecutor; asyncio.get_running_loop().run_in_executor(ThreadPoolExecutor(1), int, "x")
import asyncio; asyncio.wait_for(asyncio.sleep(5), 0.01)
import asyncio; asyncio.gather(*(asyncio.sleep(0.01 * (3 - i), i) for i in range(3)))
import asyncio; asyncio.gather(asyncio.sleep(0, 1), asyncio.wait_for(asyncio.Event().wait(), 0.01), return_exceptions=True)
import asyncio; asyncio.create_subprocess_exec("true")
import asyncio; asyncio.create_subprocess_shell("true")
import asyncio; asyncio.open_connection("127.0.0.1", 9)
import asyncio; asyncio.start_server(print, "127.0.0.1", 0)
import asyncio; asyncio.open_unix_connection("/nothing")
import asyncio; asyncio.get_running_loop().create_datagram_endpoint(asyncio.DatagramProtocol, remote_addr=("127.0.0.1", 9))
import asyncio; asyncio.get_running_loop().getaddrinfo("127.0.0.1", 80, type=__import__("socket").SOCK_STREAM).__class__.__name__
import asyncio; asyncio.get_running_loop().getnameinfo(("127.0.0.1", 80))
import asyncio, socket; asyncio.get_running_loop().sock_recv(socket.socket(), 1)
import asyncio; asyncio.get_running_loop().connect_read_pipe(asyncio.Protocol, None)
import asyncio, signal; l = asyncio.get_running_loop(); l.add_signal_handler(signal.SIGTERM, print), l.remove_signal_handler(signal.SIGTERM), l.remove_signal_handler(signal.SIGTERM)
import asyncio; asyncio.get_event_loop() is asyncio.get_running_loop(), asyncio.current_task() is not None, asyncio.get_running_loop().is_running(), asyncio.get_running_loop().is_closed()
import asyncio; l = asyncio.new_event_loop(); l.is_running(), l.close(), l.is_closed()
import asyncio; asyncio.new_event_loop().run_until_complete(asyncio.sleep(0))
import asyncio; l = asyncio.new_event_loop(); asyncio.to_thread(lambda: l.run_until_complete(asyncio.sleep(0, 4)))
import asyncio; asyncio.Runner().run(asyncio.sleep(0, 1))
import asyncio; asyncio.to_thread(lambda: asyncio.Runner().run(asyncio.sleep(0, 1)))
import anyio; anyio.to_thread.run_sync(abs, -1)
import anyio; anyio.to_thread.run_sync(lambda: anyio.from_thread.run(anyio.sleep, 0))
import anyio; anyio.to_thread.run_sync(lambda: anyio.from_thread.run_sync(abs, -2))
import anyio.from_thread; anyio.from_thread.run_sync(abs, -2)
import anyio.from_thread; anyio.from_thread.run(anyio.sleep, 0)
import anyio, contextvars; v = contextvars.ContextVar("v"); v.set(1); anyio.to_thread.run_sync(v.get)
import anyio; anyio.run(anyio.sleep, 0)
import anyio; anyio.run_process(["true"])
import anyio; anyio.open_process(["true"])
import anyio; anyio.connect_tcp("127.0.0.1", 9)
import anyio; anyio.create_tcp_listener(local_host="127.0.0.1")
import anyio; anyio.Path(FOLDER).exists()
import anyio; anyio.get_current_task().id > 0
import anyio; anyio.fail_after(0.01).__enter__() and 1
import anyio; anyio.to_thread.current_default_thread_limiter().total_tokens
import tempfile; f = tempfile.NamedTemporaryFile("w+", suffix=".txt"); f.write("x"); f.seek(0); f.read(), f.name.endswith(".txt")
import tempfile, os; d = tempfile.mkdtemp(); os.path.isdir(d), os.rmdir(d)
import tempfile; f = tempfile.TemporaryFile(); f.write(b"abc"); f.seek(1); f.read()
import tempfile, os; os.path.isdir(tempfile.gettempdir()), tempfile.gettempprefix()
import tempfile; f = tempfile.SpooledTemporaryFile(max_size=2); f.write(b"abcdef"); f.seek(0); f.read()
open(FOLDER + "/a.txt", "w").write("x\ny\n"); open(FOLDER + "/a.txt").read(), open(FOLDER + "/a.txt", "rb").read(), open(FOLDER + "/a.txt").name
f = open(FOLDER + "/nl.txt", "w", newline="\r\n"); f.write("a\nb\n"); f.close(); open(FOLDER + "/nl.txt").read(), open(FOLDER + "/nl.txt", newline="").read()
open("/no/such/file")
open(FOLDER + "/no-such-file")
open(FOLDER)
import pathlib; p = pathlib.Path(FOLDER, "p.txt"); p.write_text("é"), p.read_bytes(), p.stat().st_size, p.exists(), p.is_file(), p.suffix, p.unlink(), p.exists()
import pathlib; d = pathlib.Path(FOLDER, "d"); d.mkdir(exist_ok=True); (d / "x.txt").touch(); (d / "s").mkdir(exist_ok=True); sorted(one.name for one in d.iterdir()), [one.name for one in d.glob("*.txt")], sorted(one.name for one in d.rglob("*"))
import os, pathlib; d = pathlib.Path(FOLDER, "w"); (d / "in").mkdir(parents=True, exist_ok=True); (d / "in" / "f").touch(); [(os.path.relpath(a, FOLDER), b, c) for a, b, c in os.walk(d)], os.access(d, os.R_OK), [one.is_dir() for one in os.scandir(d)]
import os; os.chmod(FOLDER + "/a.txt", 0o600)
import os; os.chown(FOLDER + "/a.txt", 0, 0)
import os; open(FOLDER + "/l1", "w").close(); os.path.exists(FOLDER + "/l2") and os.remove(FOLDER + "/l2"); os.symlink("l1", FOLDER + "/l2"); os.readlink(FOLDER + "/l2"), os.path.islink(FOLDER + "/l2")
import os; os.rename(FOLDER + "/no-such", FOLDER + "/x")
import os, shutil; open(FOLDER + "/c1", "w").write("c"); shutil.copy(FOLDER + "/c1", FOLDER + "/c2") == FOLDER + "/c2", open(FOLDER + "/c2").read()
import shutil, os; os.makedirs(FOLDER + "/t/u", exist_ok=True); shutil.rmtree(FOLDER + "/t"); os.path.exists(FOLDER + "/t")
import shelve; s = shelve.open(FOLDER + "/shelf"); s["a"] = 1; s["a"]
import glob, os; open(FOLDER + "/g.dat", "w").close(); [os.path.basename(one) for one in glob.glob(FOLDER + "/g*.dat")]
import pathlib; h = pathlib.Path(parts.__file__).parent; (h / "data" / "lines.txt").read_text(), (h / "data" / "lines.txt").read_bytes()
import pathlib; h = pathlib.Path(parts.__file__).parent; f = open(h / "data" / "lines.txt", newline=""); f.read(), f.name.rpartition("/")[2], f.mode, f.encoding
import pathlib; h = pathlib.Path(parts.__file__).parent; open(h / "data" / "lines.txt", encoding="latin-1").readlines(), list(open(h / "data" / "lines.txt", "rb"))
import pathlib; h = pathlib.Path(parts.__file__).parent; open(h / "data" / "lines.txt", "r", -1, "utf-8", "strict", "\r\n").readlines()
import pathlib; h = pathlib.Path(parts.__file__).parent; open(h / "data" / "lines.txt", encoding="ascii").read()
import pathlib; h = pathlib.Path(parts.__file__).parent; (h / "data" / "no-such").read_text()
import pathlib; h = pathlib.Path(parts.__file__).parent; sorted(one.name for one in (h / "data").iterdir()), [one.name for one in (h / "data").glob("*.json")], (h / "data").is_dir(), (h / "nothing").exists()
import os; h = os.path.dirname(parts.__file__); sorted(os.listdir(h + "/data")), [sorted(c) for a, b, c in os.walk(h + "/data")], os.path.getsize(h + "/data/motto.json")
import os, glob; h = os.path.dirname(parts.__file__); [os.path.basename(one) for one in glob.glob(h + "/data/*.json")], sorted(one.name for one in os.scandir(h + "/data"))
import os, json; h = os.path.dirname(parts.__file__); json.load(open(os.path.join(h, "data", "motto.json"))), os.path.lexists(h + "/data/motto.json"), os.path.islink(h + "/data/motto.json"), os.path.realpath(h + "/data/motto.json") == h + "/data/motto.json"
import os; h = os.path.dirname(parts.__file__); os.access(h + "/data/motto.json", os.R_OK), os.stat(h + "/data/motto.json").st_size
import os; h = os.path.dirname(parts.__file__); os.close(os.open(h + "/data/motto.json", os.O_RDONLY))
import shutil, os; h = os.path.dirname(parts.__file__); shutil.copyfile(h + "/data/motto.json", FOLDER + "/copied"); open(FOLDER + "/copied").read()
import shutil, os; h = os.path.dirname(parts.__file__); shutil.copytree(h + "/data", FOLDER + "/tree", dirs_exist_ok=True); sorted(os.listdir(FOLDER + "/tree"))
import pkgutil; pkgutil.get_data("parts", "data/motto.json")
import pkgutil; sorted(one.name for one in pkgutil.iter_modules(parts.__path__)), sorted((one.name, one.ispkg) for one in pkgutil.walk_packages(parts.__path__, "parts."))
import pkgutil; pkgutil.resolve_name("parts.late:NAME"), pkgutil.get_loader("parts.late") is not None if hasattr(pkgutil, "get_loader") else True
import pkgutil; "json" in {one.name for one in pkgutil.iter_modules()}
import importlib.resources as r; r.files("parts").joinpath("data/motto.json").read_text(), r.files("parts").joinpath("data").is_dir()
import importlib.resources as r; sorted(one.name for one in r.files("parts").joinpath("data").iterdir()), r.files("parts").joinpath("nothing").exists()
import importlib.resources as r; str(r.as_file(r.files("parts") / "data" / "motto.json").__enter__()).endswith("motto.json")
import importlib.resources as r; r.files("parts").joinpath("data/lines.txt").read_bytes(), r.is_resource("parts", "late.py")
import importlib.resources as r; r.files("pydantic").joinpath("py.typed").is_file()
import importlib.resources as r; r.files("certifi").joinpath("cacert.pem").is_file()
import importlib.resources as r; r.files("no_such_package")
import importlib; importlib.import_module("parts.late").NAME
import importlib; importlib.import_module("." + "late", "parts").shown()
import importlib; importlib.import_module("parts.deeper.lowest").DEPTH
parts.late.NAME, parts.deeper.__name__
parts.nothing_such
from parts import late; late.NAME
from parts import nothing_such
import parts.nothing_such
import importlib; importlib.import_module("parts.deeper.nothing_such")
__import__("parts.late").late.NAME
import importlib; importlib.import_module("no_such_module")
__import__("no_such_module")
import importlib; importlib.import_module("json.no_such")
exec("try:\n  import no_such_module\nexcept ImportError as e:\n  found = e.name"); found
import importlib.util; importlib.util.find_spec("no_such_module"), importlib.util.find_spec("json") is not None, importlib.util.find_spec("parts.late") is not None
import importlib.util; importlib.util.find_spec("no_such.sub")
import importlib; importlib.reload(parts.late).NAME
import importlib; importlib.import_module("xml.dom.minidom").parseString("<a b='1'/>").documentElement.getAttribute("b")
import importlib; importlib.import_module("email.mime.text").MIMEText("x")["Content-Type"]
import importlib; importlib.import_module("logging.handlers").MemoryHandler.__name__
import importlib; importlib.import_module("concurrent.futures.process").__name__
import importlib; importlib.import_module("unittest.mock").MagicMock().x is not None
import importlib; importlib.import_module("wsgiref.util").__name__
import importlib; importlib.import_module("http.cookiejar").CookieJar.__name__
import importlib; importlib.import_module("pydoc").__name__
import importlib; importlib.import_module("rich.table").Table.__name__
import importlib; importlib.import_module("jsonschema.validators").Draft7Validator.__name__
import importlib; importlib.import_module("click.testing").CliRunner.__name__
import importlib; importlib.import_module("attr").__name__
import importlib; importlib.import_module("pydantic.v1").__name__
import importlib; importlib.import_module("pydantic.networks").AnyUrl.__name__
import importlib; importlib.import_module("httpx._transports.mock").MockTransport.__name__
import importlib; importlib.import_module("requests.packages").__name__
import importlib; importlib.import_module("certifi").where().endswith("cacert.pem")
import certifi; len(open(certifi.where()).read()) > 1000
import importlib; importlib.import_module("six.moves").__name__
import importlib; importlib.import_module("html5lib.treebuilders.etree").__name__
import importlib.metadata as m; m.version("mcp"), m.metadata("mcp")["Name"], m.version("pydantic_core")
import importlib.metadata as m; m.version("no-such-package")
import importlib.metadata as m; m.distribution("requests").version, any("urllib3" in one for one in m.requires("requests"))
import importlib.metadata as m; sorted(one.name for one in m.entry_points(group="console_scripts") if one.name in ("mcp", "httpx", "dotenv"))
import importlib.metadata as m; m.entry_points(group="console_scripts", name="httpx")["httpx"].load().__class__.__name__
import importlib.metadata as m; [one.value for one in m.entry_points(group="console_scripts") if one.name == "dotenv"]
import importlib.metadata as m; {"mcp", "pydantic", "requests"} <= {one.metadata["Name"] for one in m.distributions()}
import importlib.metadata as m; [one.name for one in m.distribution("mcp").entry_points]
import importlib.metadata as m; len(m.files("mcp")) > 5
import importlib.metadata as m; m.packages_distributions()["pydantic"]
import importlib.metadata as m; m.distribution("mcp").read_text("RECORD") is not None
import importlib.metadata as m; m.distribution("mcp").read_text("top_level.txt"), len(m.metadata("requests").get("License-Expression") or m.metadata("requests")["License"] or "") > 2
import inspect; inspect.getsource(parts.late.shown)
import inspect; inspect.getdoc(parts), inspect.getmodule(parts.late.shown).__name__, inspect.signature(parts.late.shown)
import inspect; inspect.getsource(__import__("json").dumps)[:9]
import inspect; inspect.getfile(parts.late).endswith("parts/late.py"), parts.late.__file__.endswith("parts/late.py"), parts.__path__[0].endswith("parts"), parts.__spec__.name
import linecache; linecache.getline(parts.late.__file__, 3)
import runpy; runpy.run_module("parts.late")["NAME"]
import runpy; runpy.run_path(parts.late.__file__)["NAME"]
import traceback; exec("try:\n  1 / 0\nexcept Exception:\n  t = traceback.format_exc()"); t.splitlines()[-1]
import tomllib; tomllib.loads("a = 1\n[b]\nc = 2024-01-01"), tomllib.load(open(FOLDER + "/no", "rb"))
import keyword; keyword.iskeyword("for")
import webbrowser; webbrowser.open("https://example.com")
import ftplib; ftplib.FTP("127.0.0.1", timeout=1)
import smtplib; smtplib.SMTP("127.0.0.1", 9, timeout=1)
import http.client; http.client.HTTPConnection("127.0.0.1", 9).request("GET", "/")
import http.server; http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
import http.client; c = http.client.HTTPConnection(BASE[7:]); c.request("GET", "/echo"); c.getresponse().status
import socketserver; socketserver.TCPServer(("127.0.0.1", 0), None)
import xmlrpc.client; xmlrpc.client.dumps((1, "a"))
import breakpoint_that_is_not_there
import logging; logging.getLogger("x").isEnabledFor(logging.ERROR), logging.getLevelName(20)
import gc; gc.isenabled(), isinstance(gc.collect(), int)
import weakref; exec("class A: pass"); a = A(); r = weakref.ref(a); r() is a
import cryptography.fernet; cryptography.fernet.Fernet.generate_key() and 1
import cryptography.fernet; str(cryptography.fernet.Fernet.generate_key()) and 1
from cryptography.hazmat.primitives.ciphers.aead import AESGCM; AESGCM.generate_key(128) == 1
from cryptography.hazmat.primitives import hashes; bool(hashes.Hash(hashes.SHA256()))
from cryptography.hazmat.primitives.kdf.hkdf import HKDF; from cryptography.hazmat.primitives import hashes; HKDF(hashes.SHA256(), 40, b"s", b"i").derive(b"key").hex()
from cryptography.hazmat.primitives.kdf.hkdf import HKDF; from cryptography.hazmat.primitives import hashes; HKDF(hashes.SHA512(), 40, b"s", b"i").derive(b"key").hex()
from cryptography.hazmat.primitives.kdf.hkdf import HKDF; from cryptography.hazmat.primitives import hashes; h = HKDF(hashes.SHA256(), 40, None, None); h.derive(b"key"); h.derive(b"key")
from cryptography.hazmat.primitives.kdf.hkdf import HKDF; from cryptography.hazmat.primitives import hashes; HKDF(hashes.SHA256(), 10**5, None, None)
import uvicorn; uvicorn.Config("x:y").port
import starlette.responses; starlette.responses.JSONResponse({}).body
import beartype; exec("@beartype.beartype\ndef f(x: int) -> int: return x"); f("no")
import keyring; keyring.get_password("a", "b")
"""
"""Those of one line."""
BLOCKS = r'''
import asyncio
async def main():
    async with asyncio.TaskGroup() as group:
        one = group.create_task(asyncio.sleep(0.01, "tg"))
        two = group.create_task(asyncio.to_thread(abs, -2))
    return one.result(), two.result()
main()
---
import asyncio
async def inner():
    return await asyncio.to_thread(abs, -2)
asyncio.run(asyncio.to_thread(asyncio.run, inner()))
---
from concurrent.futures import ProcessPoolExecutor
ProcessPoolExecutor(1, max_tasks_per_child=1)._max_workers
---
import asyncio
async def main():
    queue = asyncio.Queue()
    asyncio.get_running_loop().call_later(0.01, queue.put_nowait, "item")
    return await queue.get()
main()
---
import asyncio
async def main():
    seen = []
    async def one(name, pause):
        for turn in range(2):
            await asyncio.sleep(pause)
            seen.append((name, turn))
    await asyncio.gather(one("a", 0.02), one("b", 0.03))
    return seen
main()
---
import asyncio
async def main():
    try:
        async with asyncio.timeout(0.01):
            await asyncio.sleep(3)
    except TimeoutError:
        return "timed out"
main()
---
import asyncio
async def main():
    order = []
    async def other():
        order.append("other")
    task = asyncio.create_task(other())
    await asyncio.to_thread(order.append, "thread")
    await task
    return sorted(order)
main()
---
import asyncio
async def main():
    done, pending = await asyncio.wait([asyncio.create_task(asyncio.sleep(one)) for one in (0, 5)], timeout=0.02)
    for one in pending:
        one.cancel()
    return len(done), len(pending)
main()
---
import asyncio, contextvars
value = contextvars.ContextVar("value", default="unset")
async def main():
    await asyncio.to_thread(value.set, "leaked")
    return value.get()
main()
---
import anyio, contextvars
value = contextvars.ContextVar("value", default="unset")
async def main():
    await anyio.to_thread.run_sync(value.set, "leaked")
    return value.get()
main()
---
import anyio
async def main():
    send, receive = anyio.create_memory_object_stream(1)
    async with anyio.create_task_group() as group:
        group.start_soon(send.send, 5)
        return await receive.receive()
main()
---
import anyio
async def main():
    with anyio.move_on_after(0.01) as scope:
        await anyio.sleep(3)
    return scope.cancelled_caught
main()
---
import asyncio
async def main():
    lock = asyncio.Lock()
    async with lock:
        return lock.locked(), (await asyncio.wait({asyncio.create_task(lock.acquire())}, timeout=0.01))[0]
main()
---
import threading, queue, concurrent.futures
pool = concurrent.futures.ThreadPoolExecutor(2)
line = queue.Queue()
waits = pool.submit(line.get)
pool.submit(line.put, "for the other thread")
waits.result()
---
import asyncio
def work():
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(asyncio.sleep(0, "own loop"))
    return "the loop of another thread"
asyncio.to_thread(work)
---
import asyncio
async def main():
    loop, found = asyncio.get_running_loop(), []
    def work():
        return asyncio.run_coroutine_threadsafe(asyncio.sleep(0, "from the loop"), loop).result(0.2)
    return await asyncio.to_thread(work)
main()
---
import functools, concurrent.futures
with concurrent.futures.ThreadPoolExecutor(max_workers=4) as pool:
    futures = {pool.submit(functools.partial(pow, 2), n): n for n in range(4)}
    found = sorted((futures[one], one.result()) for one in concurrent.futures.as_completed(futures))
found
---
import concurrent.futures
pool = concurrent.futures.ThreadPoolExecutor(1, initializer=int, initargs=("x",))
pool.submit(abs, -1).result()
---
import lxml.html
page = lxml.html.fromstring("<html><head><title>T</title></head><body><p class='a b'>one <b>two</b> tail</p><a href='/x'>link</a></body></html>")
(page.tag, [one.text_content() for one in page.xpath("//p")], page.xpath("//a/@href"), page.xpath("string(//title)"), page.xpath("count(//p)"),
 page.findtext(".//title"), page.find(".//b").tail, page.xpath("//p")[0].get("class"), [one.tag for one in page.iter()], len(page), page[0].tag)
---
import lxml.html
page = lxml.html.fromstring("<div><p>1</p><p>2</p></div>")
page.tag, page.xpath("p")[0] == page.xpath("p")[0], page.xpath("p")[0] in page.findall("p"), [one.text for one in page], page.find("nothing")
---
import lxml.html
page = lxml.html.fromstring("<div><p>1</p></div>")
page[0].set("id", "x")
page.xpath("p")[0].get("id")
---
import lxml.html
page = lxml.html.fromstring("<div><p>1</p></div>")
page[0].attrib["id"] = "x"
page.xpath("p")[0].get("id")
---
import lxml.html
lxml.html.fromstring("<div><p>1</p></div>")[0].getparent().tag
---
import lxml.html
lxml.html.tostring(lxml.html.fromstring("<div><p>1</p></div>"))
---
import lxml.html
lxml.html.fromstring("<div><p class=a>1</p></div>").cssselect("p.a")[0].text
---
import lxml.html
lxml.html.fromstring("<div><p>1</p></div>").xpath("//[")
---
import lxml.html
page = lxml.html.fromstring("<div><p>1</p></div>")
page.text = "changed"
lxml.html.fromstring("")
---
import lxml.etree
lxml.etree.fromstring("<a><b/></a>").tag
---
import lxml.html
page = lxml.html.fromstring("<p>a</p><p>b</p>")
page.tag, [one.text for one in page]
'''
"""Those of several lines."""
HTTP = r"""
import httpx; r = httpx.get(BASE + "/echo?a=1&b=ä", headers={"x-own": "v"}); r.status_code, r.json(), r.reason_phrase, r.headers["content-type"], r.url.path, r.http_version, r.is_success
import httpx; httpx.post(BASE + "/echo", json={"a": [1, "é"]}).json()
import httpx; httpx.post(BASE + "/echo", data={"a": "1 2", "b": ["x", "y"]}).json()
import httpx; httpx.put(BASE + "/echo", content=b"\x00\xff").json()
import httpx; httpx.get(BASE + "/redirect").status_code, httpx.get(BASE + "/redirect", follow_redirects=True).json()["query"]
import httpx; r = httpx.get(BASE + "/redirect", follow_redirects=True); [one.status_code for one in r.history], r.json()["headers"]["cookie"]
import httpx; dict(httpx.get(BASE + "/cookies").cookies), httpx.get(BASE + "/cookies").headers.get_list("set-cookie")
import httpx; httpx.get(BASE + "/gzip").json()["path"], httpx.get(BASE + "/deflate").json()["path"], httpx.get(BASE + "/latin").text, httpx.get(BASE + "/bytes").content[250:]
import httpx; httpx.get(BASE + "/status/404").raise_for_status()
import httpx; httpx.get(BASE + "/loop", follow_redirects=True)
import httpx; httpx.get(BASE + "/echo", auth=("u", "p")).json()["headers"]["authorization"], httpx.get(BASE + "/echo", cookies={"c": "1"}).json()["headers"]["cookie"]
import httpx; exec("with httpx.stream('GET', BASE + '/lines') as r: found = list(r.iter_lines())"); found
import httpx; httpx.get(BASE + "/empty").content, httpx.head(BASE + "/echo").headers["content-length"].isdigit(), httpx.options(BASE + "/echo").json()["method"], httpx.delete(BASE + "/echo").json()["method"]
import httpx; c = httpx.Client(base_url=BASE, params={"k": "v"}, headers={"x-own": "w"}); c.get("/cookies"), c.get("/echo").json(), dict(c.cookies)
import httpx; httpx.post(BASE + "/echo", files={"f": ("n.txt", b"abc")}).json()["headers"]["content-type"][:30]
import httpx; httpx.get(BASE + "/wrong").json()
import httpx; httpx.AsyncClient().get(BASE + "/lines", timeout=5)
import httpx; httpx.get("nothing://x")
import httpx; httpx.Client(transport=httpx.MockTransport(lambda request: httpx.Response(201, json={"m": request.method}))).get("https://x.example/").json()
import httpx; httpx.Client(cert="no-such-file.pem").get(BASE + "/echo").status_code
import httpx; httpx.Client(proxy="http://127.0.0.1:9").get(BASE + "/echo").status_code
import httpx; httpx.get("http://127.0.0.1:9/").status_code
import httpx; type(httpx.get(BASE + "/echo").elapsed).__name__
import requests; r = requests.get(BASE + "/echo", params={"a": "1 2", "b": ["x", "y"]}, headers={"x-own": "v"}); r.status_code, r.json(), r.reason, r.ok, r.url.rpartition(":")[2][5:], r.encoding, r.headers["Content-Type"]
import requests; requests.post(BASE + "/echo", json={"a": "é"}).json(), requests.post(BASE + "/echo", data={"a": 1}).json(), requests.post(BASE + "/echo", data="text").json()
import requests; r = requests.get(BASE + "/redirect"); [one.status_code for one in r.history], r.json()["query"], r.json()["headers"]["cookie"], requests.get(BASE + "/redirect", allow_redirects=False).headers["location"]
import requests; r = requests.get(BASE + "/cookies"); dict(r.cookies), s.get(BASE + "/echo").json()["headers"]["cookie"] if (s := requests.Session()).get(BASE + "/cookies") else None
import requests; requests.get(BASE + "/gzip").json()["path"], requests.get(BASE + "/deflate").json()["path"], requests.get(BASE + "/latin").text, requests.get(BASE + "/bytes").content[250:]
import requests; requests.get(BASE + "/status/500").raise_for_status()
import requests; requests.get(BASE + "/loop")
import requests; requests.get(BASE + "/wrong").json()
import requests; requests.get(BASE + "/echo", auth=("u", "p"), cookies={"c": "1"}).json()["headers"]
import requests; r = requests.get(BASE + "/lines", stream=True); list(r.iter_lines()), requests.get(BASE + "/lines").apparent_encoding, list(requests.get(BASE + "/lines").iter_content(5))
import requests; r = requests.get(BASE + "/lines", stream=True); r.raw.read(3), r.raw.status, r.raw.headers["content-type"], r.raw.read()
import requests; requests.get(BASE + "/empty").content, requests.head(BASE + "/echo").status_code, requests.head(BASE + "/redirect").status_code, requests.get(BASE + "/echo").elapsed.total_seconds() > 0
import requests; requests.post(BASE + "/echo", files={"f": ("n.txt", b"abc")}).json()["headers"]["content-type"][:30]
import requests; requests.get("nothing"), 1
import requests; requests.get("http://127.0.0.1:9/")
import requests; requests.get(BASE + "/echo", cert="no-such-file.pem").status_code
import requests; requests.get(BASE + "/echo", proxies={"http": "http://127.0.0.1:9"}).status_code
import requests; requests.get(BASE + "/echo", verify="/no/such/file").status_code
import requests; r = requests.get(BASE + "/echo", hooks={"response": lambda r, **k: setattr(r, "marked", 1)}); r.marked, r.request.method, r.connection is not None, r.close()
import urllib.request as u; r = u.urlopen(BASE + "/echo?x=1"); r.status, r.read()[:20], r.headers["content-type"], r.getcode(), r.reason, r.geturl().rpartition("/")[2], r.headers.get_content_type(), r.info().get_content_charset()
import urllib.request as u, json; json.load(u.urlopen(u.Request(BASE + "/echo", data=b"a=1", headers={"X-Own": "v"}, method="PUT")))
import urllib.request as u; u.urlopen(BASE + "/status/404")
import urllib.request as u, urllib.error; exec("try: u.urlopen(BASE + '/status/418')\nexcept urllib.error.HTTPError as e: found = e.code, e.read()[:10], e.headers['content-type']"); found
import urllib.request as u; u.urlopen(BASE + "/redirect").geturl().rpartition("/")[2]
import urllib.request as u; u.urlopen(BASE + "/loop")
import urllib.request as u; u.urlopen(BASE + "/echo").getheader("content-type"), u.urlopen(BASE + "/echo").getheaders()[-1][0].lower(), u.urlopen(BASE + "/echo").version
import urllib.request as u, http.cookiejar as j; c = j.CookieJar(); u.build_opener(u.HTTPCookieProcessor(c)).open(BASE + "/cookies"); sorted((one.name, one.value) for one in c)
import urllib.request as u; r = u.urlopen(BASE + "/lines"); [line for line in r]
import urllib.request as u; u.urlopen(BASE + "/gzip").read()[:2], u.urlopen(BASE + "/gzip").headers["content-encoding"]
import urllib.request as u; u.urlopen("http://127.0.0.1:9/")
import urllib.request as u; u.urlopen("file:///no/such/file")
import urllib.request as u; u.urlopen("data:text/plain,abc").read()
import urllib.request as u; u.urlopen("ftp://127.0.0.1:9/x")
import urllib.request as u; u.urlretrieve(BASE + "/lines", FOLDER + "/got")[0] == FOLDER + "/got", open(FOLDER + "/got").read()
import urllib.request as u; u.getproxies() or {}
import urllib.request as u; u.build_opener(u.ProxyHandler({"http": "http://127.0.0.1:9"})).open(BASE + "/echo").status
import urllib3; r = urllib3.PoolManager().request("GET", BASE + "/echo", fields={"a": "1"}); r.status, r.data[:15], r.headers["content-type"], r.json()["query"], r.reason
import urllib3; r = urllib3.request("POST", BASE + "/echo", json={"a": 1}, headers={"x-own": "v"}); r.json()
import urllib3; urllib3.request("GET", BASE + "/redirect").json()["query"], urllib3.request("GET", BASE + "/redirect", redirect=False).status
import urllib3; urllib3.request("GET", BASE + "/gzip").json()["path"], urllib3.request("GET", BASE + "/cookies").headers.getlist("set-cookie")
import urllib3; urllib3.request("GET", BASE + "/loop")
import urllib3; urllib3.request("GET", "http://127.0.0.1:9/", retries=False)
import urllib3; urllib3.request("GET", BASE + "/status/503", retries=urllib3.Retry(2, status_forcelist=[503]))
import urllib3; r = urllib3.request("GET", BASE + "/lines", preload_content=False); r.read(3), list(r.stream(4)), r.closed, r.release_conn()
import urllib.parse as p; p.urlparse("HTTP://u:p@H:1/a;b?c#d"), p.quote("ä/ b"), p.urlencode({"a": [1, 2]}, doseq=True), p.urljoin("http://a/b/c", "../d"), p.parse_qs("a=1&a=2&b=")
"""
AIOHTTP = """
await s.get(BASE + "/echo", params={"a": "1 2"}, headers={"x-own": "v"}) | (r.status, r.reason, await r.json(), r.ok, r.content_type, r.charset, r.method, r.url.path, r.url.query_string)
await s.post(BASE + "/echo", json={"a": 1}) | await r.json()
await s.post(BASE + "/echo", data={"a": "x y"}) | await r.json()
await s.post(BASE + "/echo", data=b"raw") | await r.json()
await s.post(BASE + "/echo", data="text") | await r.json()
await s.get(BASE + "/redirect") | (r.status, [one.status for one in r.history], (await r.json())["query"], r.url.path, (await r.json())["headers"]["cookie"])
await s.get(BASE + "/redirect", allow_redirects=False) | (r.status, r.headers["location"], {k: v.value for k, v in r.cookies.items()})
await s.get(BASE + "/loop") | r.status
await s.get(BASE + "/cookies") | ({k: v.value for k, v in r.cookies.items()}, r.headers.getall("set-cookie"), (await (await s.get(BASE + "/echo")).json())["headers"]["cookie"])
await s.get(BASE + "/gzip") | (await r.json())["path"]
await s.get(BASE + "/latin") | await r.text()
await s.get(BASE + "/bytes") | (await r.read())[250:]
await s.get(BASE + "/lines") | [line async for line in r.content]
await s.get(BASE + "/lines") | [one async for one in r.content.iter_chunked(5)]
await s.get(BASE + "/lines") | (await r.content.read(3), await r.content.readexactly(2), await r.content.readany(), r.content.at_eof())
await s.get(BASE + "/lines") | await r.json()
await s.get(BASE + "/wrong") | await r.json()
await s.get(BASE + "/status/404") | (r.status, r.ok, r.reason, r.raise_for_status())
await s.get(BASE + "/status/404", raise_for_status=True) | 1
await s.get(BASE + "/empty") | (r.status, await r.read(), await r.text())
await s.head(BASE + "/echo") | (r.status, await r.read(), r.content_length > 5)
await s.get(BASE + "/echo", auth=aiohttp.BasicAuth("u", "p"), cookies={"c": "1"}) | (await r.json())["headers"]
await s.get("http://127.0.0.1:9/") | 1
await s.get(BASE + "/echo", timeout=aiohttp.ClientTimeout(total=5)) | (r.request_info.method, r.real_url.path, r.version, r.closed, r.get_encoding(), r.links, r.release())
await s.get(BASE + "/echo", proxy="http://127.0.0.1:9") | r.status
await s.get(BASE + "/echo", ssl=False) | r.status
await s.ws_connect(BASE + "/echo") | 1
await s.get(BASE + "/echo", no_such_argument=1) | 1
await s.post(BASE + "/echo", data=aiohttp.FormData({"a": "1"})) | await r.json()
await s.post(BASE + "/echo", data=form) | (await r.json())["headers"]["content-type"][:19]
await s.get("nothing") | 1
"""
REGEX = [
    (r"\p{L}+", "héllo wörld 12"), (r"\p{Lu}\p{Ll}*", "Abc Äbc xyz"), (r"[\p{N}.]+", "a 1.5 ٣"), (r"\P{L}+", "ab 12"), (r"\p{^L}", "a1"),
    (r"(\w+) (?P<second>\w+)", "one two three"), (r"(?i)straße", "STRASSE Straße"), (r"\bfoo\b", "a foo b"), (r"a{2,3}?", "aaaa"), (r"(a)|(b)", "ab"),
    (r"[[:alpha:]]+", "ab1"), (r"\X", "e\u0301a"), (r"(?|(a)|(b))", "ab"), (r"(foo){e<=1}", "fo foo"), (r"\m\w+", "ab cd"), (r"foo\K\d", "foo1"),
    (r"(?<=a+)b", "aab"), (r"(?P<n>a)|(?P<n>b)", "ab"), (r"\h+", "a \tb"), (r"\R", "a\r\nb"), (r"\L<words>", "x"), (r"(?r)\d", "123"),
    (r"(\((?:[^()]|(?1))*\))", "(a(b)c)"), (r"(?V1)[a-z--[aeiou]]+", "hello"), (r"[a-z&&[^b]]", "abc"), (r"a++b", "aab"), (r"(?>a+)b", "aab"),
    (r"\N{SNOWMAN}", "☃"), (r"(", "x"), (r"*", "x"), (r"\p{Script=Greek}+", "αβγ abc"), (r"\p{IsGreek}", "α"), (r"\p{Nothing}", "x"), (r"(?e)(ab){e}", "ac"),
    (r"^\w+$", "one\ntwo"), (r"(?m)^\w+$", "one\ntwo"), (r"(?s).+", "a\nb"), (r"a(?i)b", "aB"), (r"(?(1)a|b)", "b"), (r"\d+(?=€)", "5€ 6"), (r"", "ab"),
    (r"\G\d", "12a3"), (r"(?:a|ab)(?:c|bcd)", "abcd"), (r"[^\W\d_]+", "a_1é"), (r"\p{Alphabetic}+", "aⅧ1"), (r"\p{Alpha}", "ª"), (r"\p{Upper}", "Ⓐ"), (r"(?p)a|ab", "ab"),
    (r"\p{Latin}+", "abc αβγ"), (r"\p{Punct}", "$."), (r"\p{Any}", "x"), (r"(?i:a)B", "AB"), (r"(?w)\b\w+", "a'b"), (r"[]a]", "]"), (r"[a-]", "-"), (r"(?#x)a", "a"),
]  # fmt: skip
REGEX_CALLS = """
regex.findall(r"\\w\\w", "abcd", overlapped=True)
regex.search(r"(\\w)+", "abc").captures(1)
regex.search(r"(\\w)+", "abc").capturesdict()
regex.search(r"(?P<a>\\w)", "abc").expandf("{a}")
regex.subf(r"(\\w)", "{1}!", "ab")
regex.match(r"abcd", "ab", partial=True)
regex.compile(r"\\w+").findall("a b", pos=1)
regex.compile(r"\\w+", regex.IGNORECASE | regex.MULTILINE).sub("x", "a b", count=1)
regex.split(r"(,)", "a,b,c", maxsplit=1), regex.sub(r"a", "b", "aaa", 2), regex.subn("a", "b", "aa")
regex.sub(r"(?P<n>a)", r"<\\g<n>\\1>", "ba"), regex.escape("a.b c"), regex.escape("a b-c")
regex.compile("a", regex.REVERSE).findall("ab")
regex.compile("a", regex.V1).findall("ab")
regex.compile("a", regex.POSIX).findall("ab")
regex.compile("(a)(b)?").search("xa").groups(), regex.compile("(?P<x>a)").groupindex, regex.compile("a").pattern
list(regex.splititer(",", "a,b"))
regex.fullmatch("a+", "aa").span(), regex.match("(a)(b)", "ab")[2], regex.match("(a)", "ab").expand(r"\\1"), regex.match("(a)", "ab").lastindex
regex.search("a", "ba", pos=1).start(), [m.group() for m in regex.finditer("a", "aba")]
regex.search("a", "b"), regex.match("a", "a").string, regex.match("a", "a").re.pattern, bool(regex.match("", ""))
regex.compile("a", words=["x"])
regex.findall(r"\\L<words>", "ab", words=["a"])
regex.findall("a", "A", flags=regex.I), regex.findall("a", "A", regex.I), regex.findall("(?i)ss", "ß"), regex.findall("ß", "SS", regex.I | regex.F)
regex.sub("a", lambda m: m.group().upper(), "aba"), regex.cache_all(), regex.purge()
isinstance(regex.compile("a"), regex.Pattern), isinstance(regex.match("a", "a"), regex.Match), regex.error is regex._regex_core.error if hasattr(regex, "_regex_core") else True
regex.search("a", "b" * 9, timeout=5), regex.findall("a", "aa", concurrent=True)
regex.match("(a)|(b)", "b").groups(), regex.match("(a)|(b)", "b").groupdict(), regex.match("(a)|b", "b").start(1), regex.match("(a)", "a").regs
regex.findall(b"a+", b"baa"), regex.compile(b"(?P<n>a)").search(b"a").groupdict()
regex.match("a", "a").fuzzy_counts
regex.match("a", "a").detach_string()
regex.no_such_thing
regex.__version__ > "2"
"""
RPDS = """
rpds.HashTrieMap({"a": 1}), rpds.HashTrieMap({"a": 1}).insert("b", 2).get("b"), rpds.HashTrieMap([("a", 1)])["a"], len(rpds.HashTrieMap())
rpds.HashTrieMap({"a": 1})["b"]
rpds.HashTrieMap({"a": 1}).remove("b")
rpds.HashTrieMap({"a": 1}).discard("b"), rpds.HashTrieMap({"a": 1}) == rpds.HashTrieMap({"a": 1}), rpds.HashTrieMap({"a": 1}) != rpds.HashTrieMap()
rpds.HashTrieMap({"a": 1}) == {"a": 1}
rpds.HashTrieMap({"a": 1}).keys(), rpds.HashTrieMap({"a": 1}).values(), rpds.HashTrieMap({"a": 1}).items()
list(rpds.HashTrieMap({"a": 1}).keys()), list(rpds.HashTrieMap({"a": 1}).items()), "a" in rpds.HashTrieMap({"a": 1}), "a" in rpds.HashTrieMap({"a": 1}).keys()
rpds.HashTrieMap({"a": 1}).update({"b": 2}, c=3) == rpds.HashTrieMap({"a": 1, "b": 2, "c": 3}), rpds.HashTrieMap.convert({"a": 1}), rpds.HashTrieMap.fromkeys([1], 2)
hash(rpds.HashTrieMap({"a": 1})) == hash(rpds.HashTrieMap({"a": 1})), rpds.HashTrieMap(a=1), rpds.HashTrieMap().get("x", 5)
hash(rpds.HashTrieMap({"a": []}))
rpds.HashTrieMap(5)
rpds.HashTrieSet([1]), len(rpds.HashTrieSet("ab")), 1 in rpds.HashTrieSet([1]), rpds.HashTrieSet(), list(rpds.HashTrieSet([5]))
rpds.HashTrieSet([1]).insert(2) == rpds.HashTrieSet([2, 1]), rpds.HashTrieSet([1]).discard(5), rpds.HashTrieSet([1]).update([2], [3]) == rpds.HashTrieSet([1, 2, 3])
rpds.HashTrieSet([1]).remove(2)
rpds.HashTrieSet([1, 2]).intersection(rpds.HashTrieSet([2])), rpds.HashTrieSet([1]).union(rpds.HashTrieSet([1])), rpds.HashTrieSet([1, 2]).difference(rpds.HashTrieSet([2]))
rpds.HashTrieSet([1, 2]) & {2}, rpds.HashTrieSet([1]) | {1}, rpds.HashTrieSet([1, 2]) - {2}, rpds.HashTrieSet([1]) ^ {1}
rpds.HashTrieSet([1]) == {1}, rpds.HashTrieSet([1]) < {1, 2}, rpds.HashTrieSet([1]) <= rpds.HashTrieSet([1])
hash(rpds.HashTrieSet([1])) == hash(rpds.HashTrieSet([1])), rpds.HashTrieSet([1]).symmetric_difference({1, 2})
rpds.List([1, 2]), rpds.List(1, 2), rpds.List(), rpds.List([1, 2]).first, rpds.List([1, 2]).rest, len(rpds.List([1]))
rpds.List().first
rpds.List().drop_first()
rpds.List([1]).push_front(0), list(reversed(rpds.List([1, 2]))), list(rpds.List([1])), rpds.List([1]) == rpds.List([1]), rpds.List([1]) == [1]
hash(rpds.List([1])) == hash(rpds.List([1])), rpds.List([1, 2]).rest.rest
rpds.List(1)
rpds.Queue([1, 2]), rpds.Queue([1]).enqueue(2), rpds.Queue([1, 2]).dequeue(), rpds.Queue([1]).peek(), rpds.Queue().is_empty(), len(rpds.Queue([1]))
rpds.Queue().dequeue()
rpds.Queue([1]) == rpds.Queue([1]), list(rpds.Queue([1, 2])), hash(rpds.Queue([1])) == hash(rpds.Queue([1]))
rpds.Stack([1])
pickle.loads(pickle.dumps(rpds.HashTrieMap({"a": 1}))), pickle.loads(pickle.dumps(rpds.List([1])))
"""
ORJSON_VALUES = (
    '{"a": [1, 2.5, None, True, "é\\u2028\\"\\\\"]}', '{"b": 1, "a": 2}', "1.0", "1e20", "1e-7", "5e-324", 'float("nan")', 'float("inf")', "-0.0", "2**53", "2**63", "2**64", "-2**63 - 1", '"\\ud800"',
    '"\\x00\\x1f\\x7f"', "(1, 2)", "{1, 2}", 'b"x"', "{1: 2}", "{None: 1, True: 2, 1.5: 3}", "{d.date(2024, 1, 1): 1}", "d.datetime(2024, 1, 2, 3, 4, 5, 6)", "d.datetime(2024, 1, 2, tzinfo=d.timezone.utc)",
    "d.datetime(2024, 1, 2, 3, 4, 5, 6, tzinfo=d.timezone(d.timedelta(hours=-3, minutes=-30)))", "d.date(2024, 1, 2)", "d.time(1, 2, 3, 4)", "d.time(1, tzinfo=d.timezone.utc)", "d.timedelta(1)", "uuid.UUID(int=5)", "decimal.Decimal(1)",
    "Color.RED", "{Color.RED: 1}", "Point(1, _hidden=2)", "Named(1, 2)", "Text('x')", "Number(5)", "Map(a=1)", "object()", "[[]] * 3", "{}", "{'a': {'b': []}}", "range(3)", "Model(a=1)", "'\\U0001f600'", "d.datetime(5, 1, 1)", "True",
    "[Text('x'), Number(1)]", "1.7976931348623157e308", "123456789.123456789", "1e16", "100000.0", "0.1", "{'': 1}", "{Text('k'): 1}", "{uuid.UUID(int=1): 2}", "zoned()",
)  # fmt: skip
ORJSON_OPTIONS = (
    "OPT_APPEND_NEWLINE", "OPT_INDENT_2", "OPT_NAIVE_UTC", "OPT_NON_STR_KEYS", "OPT_OMIT_MICROSECONDS", "OPT_PASSTHROUGH_DATACLASS", "OPT_PASSTHROUGH_DATETIME",
    "OPT_PASSTHROUGH_SUBCLASS", "OPT_SORT_KEYS", "OPT_STRICT_INTEGER", "OPT_UTC_Z", "OPT_SERIALIZE_NUMPY", "OPT_SERIALIZE_UUID",
)  # fmt: skip
ORJSON_TEXTS = (
    '\'{"a": 1}\'', "b'[1.5]'", "bytearray(b'[]')", "memoryview(b'1')", "'NaN'", "'Infinity'", "'1e400'", "'18446744073709551615'", "'18446744073709551616'", "'-9223372036854775809'", "b'\\xff'", "''", "'[1,]'",
    "'{\"a\":1,\"a\":2}'", "'\"\\\\ud800\"'", "'\"\\\\ud83d\\\\ude00\"'", "' 1 '", "'01'", "'1.'", "'[' * 2000", "'-0'", "'-0.0'", "'1E5'", "'\"\\t\"'", "5", "None", "b'\\xef\\xbb\\xbf1'", "'nul'", "'{\"a\" 1}'", "'1 2'", "'\"abc'",
)  # fmt: skip
ORJSON_SETUP = "import orjson; from shapes import *; "
TYPES = (
    "int", "float", "str", "bool", "bytes", "list[int]", "set[int]", "tuple[int, str]", "tuple[int, ...]", "dict[str, int]", "frozenset[str]", "d.datetime", "d.date", "d.time", "d.timedelta", "uuid.UUID", "decimal.Decimal", "Color", "Level",
    "int | None", "int | str", "float | int", "str | list[int]", "bool | int", "t.Literal['a', 1, None]", "p.EmailStr if 0 else str", "p.AnyUrl", "p.HttpUrl", "p.Json", "p.Json[list[int]]", "p.PositiveInt", "p.conint(ge=1, le=10)", "p.constr(pattern='^a+$', max_length=3)",
    "p.constr(strip_whitespace=True, to_lower=True, min_length=1)", "p.conlist(int, min_length=1, max_length=2)", "p.confloat(gt=0, multiple_of=0.5)", "p.condecimal(max_digits=4, decimal_places=2)", "t.Any", "None", "pathlib.Path", "p.StrictInt", "p.StrictStr", "p.StrictBool", "p.FiniteFloat",
    "p.ByteSize", "p.SecretStr", "p.AwareDatetime", "p.NaiveDatetime", "p.PastDate", "p.UUID4", "t.Annotated[int, p.AfterValidator(lambda v: v + 1)]", "t.Annotated[int, p.BeforeValidator(lambda v: v or 0)]", "t.Annotated[str, p.Field(max_length=2)]", "ipaddress.IPv4Address", "re.Pattern", "complex",
    "fractions.Fraction", "collections.deque[int]", "t.Sequence[int]", "t.Callable", "type[int]", "Model", "Data", "Typed", "t.Annotated[Cat | Dog, p.Field(discriminator='kind')]", "Cat | Dog", "list[Model]", "dict[int, list[str]]", "p.Base64Bytes", "t.Hashable", "ipaddress.IPv6Network", "p.ImportString",
)  # fmt: skip
INPUTS = (
    "0", "1", "-1", "1.0", "1.5", "'1'", "'1.5'", "'abc'", "''", "' a '", "'A'", "True", "False", "'true'", "'yes'", "None", "b'x'", "b'1'", "[]", "[1]", "['1', 2]", "[1, 'x']", "(1, '2')", "{1, 2}", "{}", "{'a': 1}", "{'a': '1', 'b': 2}", "{'kind': 'cat', 'lives': 3}", "{'kind': 'cow'}", "{'kind': 'dog'}",
    "'2024-01-02'", "'2024-01-02T03:04:05Z'", "'2024-01-02 03:04:05.678+05:30'", "1704164645", "1704164645000", "'P1DT2H3.5S'", "'1 day, 02:03:04'", "'01:02'", "'12:30:00.5Z'", "'10:00:60'", "d.datetime(2024, 1, 2, 3)", "d.date(2024, 1, 2)", "d.timedelta(1)", "d.time(1, 2)", "'00000000-0000-4000-8000-000000000001'", "uuid.UUID(int=1)",
    "decimal.Decimal('1.10')", "'1.100'", "'12345.6'", "'nan'", "float('inf')", "10**20", "'1_000'", "' 12 '", "'0x1'", "'http://example.com'", "'https://exämple.com:443/a b?q=ä#f'", "'foo://x'", "'http://'", "'red'", "Color.RED", "2", "'[1, 2]'", "'{'", "'null'", "'aaa'", "'aaaa'", "'1KiB'", "'1.2.3.4'", "'::/0'", "'(a'", "1e300",
    "object()", "Model(a=1)", "Data(1)", "[[1], 2]", "range(3)", "iter([1, 2])", "int", "len", "'2024-13-01'", "'2024-02-30T00:00'", "'1e3'", "1+2j", "'1+2j'", "fractions.Fraction(1, 3)", "'1/3'", "'aGk='", "{'x': '1'}", "{'x': 1, 'y': 2}", "'math.pi'", "[{'a': 1}, {'a': 'x'}]", "{'1': ['a', 2]}",
)  # fmt: skip
PYDANTIC_SETUP = "from shapes import *; "
PYDANTIC = """
p.create_model('M', a=(int, p.Field(alias='A', gt=0)), b=(list[str], p.Field(default_factory=list, max_length=1))).model_json_schema()
p.create_model('M', a=(int, ...), __config__=p.ConfigDict(extra='forbid'))(a=1, b=2)
p.create_model('M', a=(int, ...), __config__=p.ConfigDict(extra='allow'))(a=1, b=2)
p.create_model('M', a=(int, ...), __config__=p.ConfigDict(strict=True))(a='1')
p.create_model('M', a=(int, ...), __config__=p.ConfigDict(frozen=True))(a=1).__setattr__('a', 2)
p.create_model('M', a=(str, ...), __config__=p.ConfigDict(str_strip_whitespace=True, str_max_length=3))(a='  abc ')
Model(a='x', b=1)
Model()
Model(a=1).model_dump(), Model(a=1).model_dump_json(), Model(a=1).model_dump(exclude_none=True), Model(a=1).model_dump(exclude_unset=True), Model(a=1, b='x').model_dump(include={'b'})
Model(a=1).model_copy(update={'a': 'not checked'}), Model(a=1) == Model(a=1), Model(a=1).model_fields_set, Model.model_construct(a='x')
Model.model_validate_json('{"a": 1, "b": "é"}'), Model.model_validate_json('{"a": "1"}'), Model.model_validate({'a': 1.0})
Model.model_validate_json('{"a": 1,}')
Model.model_validate_json('{"a": 1, "a": 2}')
Model.model_validate_json('[1]')
Model.model_validate_json('{"a": 1e5}'), Model.model_validate_json('{"a": NaN}')
p.TypeAdapter(list[Model]).validate_python([{'a': 1}, Model(a=2)]), p.TypeAdapter(list[Model]).dump_json([Model(a=1)])
p.TypeAdapter(dict[str, t.Any]).dump_json({'a': float('nan'), 'b': d.date(2024, 1, 1), 'c': decimal.Decimal('1.10'), 'd': {1}, 'e': b'x', 'f': Color.RED, 'g': uuid.UUID(int=1)})
p.TypeAdapter(t.Any).dump_json(object())
p.TypeAdapter(t.Any).dump_python({'a': (1, {2}), 'b': d.timedelta(1, 2)}, mode='json')
p.TypeAdapter(float).dump_json(float('inf')), p.TypeAdapter(float).dump_json(1e16), p.TypeAdapter(float).dump_json(1e-7), p.TypeAdapter(float).dump_json(1.0)
p.TypeAdapter(bytes).dump_json(b'\\xff')
p.TypeAdapter(d.timedelta).dump_json(d.timedelta(days=-1, seconds=3.5)), p.TypeAdapter(d.datetime).dump_json(d.datetime(2024, 1, 1, tzinfo=d.timezone.utc)), p.TypeAdapter(d.time).dump_json(d.time(1, 2, 3, 4))
p.TypeAdapter(int).dump_python('not an int', warnings=False), p.TypeAdapter(dict[int, str]).dump_json({1: 'a'})
p.TypeAdapter(int).dump_python('x', warnings='error')
p.validate_call(lambda a, b=2: a)(1, b=3)
exec('@p.validate_call\\ndef f(a: int, *, b: str = "x", **k: int): return a, b, k'), f('1', b='y', c='3')
exec('@p.validate_call\\ndef f(a: int, *, b: str = "x"): return a, b'), f('x', c=1)
exec('@p.validate_call\\ndef f(a: int, /, *r: int): return a, r'), f(1, '2', 'x')
str(caught(lambda: Model(a='x')))
str(caught(lambda: p.TypeAdapter(list[int]).validate_python(['x'] * 3)))
caught(lambda: Model(a='x')).json(include_url=False), caught(lambda: Model(a='x')).error_count(), caught(lambda: Model(a='x')).title
p.TypeAdapter(p.AnyUrl).validate_python('http://user:pw@Example.COM:80/a/../b?x=1#y').unicode_string()
p.HttpUrl('http://exämple.com').host, str(p.HttpUrl('http://example.com')), p.AnyUrl('file:///a b').path, p.HttpUrl('https://a.b/c?d=e').query_params()
p.AnyUrl.build(scheme='https', host='x.y', port=8, path='a', query='b=c')
p.SecretStr('x'), p.SecretStr('x').get_secret_value(), str(p.SecretStr('x')), p.TypeAdapter(p.SecretStr).dump_json(p.SecretStr('x'))
p.TypeAdapter(p.ByteSize).validate_python('1.5 GB').human_readable(), p.ByteSize(3000).to('KB')
exec('class V(p.BaseModel):\\n  n: int\\n  @p.field_validator("n")\\n  @classmethod\\n  def c(cls, v):\\n    if v > 2: raise ValueError("too much")\\n    return v * 10'), V(n=1), V(n=3)
exec('class V(p.BaseModel):\\n  a: int\\n  b: int\\n  @p.model_validator(mode="after")\\n  def c(self):\\n    assert self.a < self.b, "a is not less"\\n    return self'), V(a=1, b=2), V(a=2, b=1)
exec('class V(p.BaseModel):\\n  a: int\\n  @p.model_validator(mode="before")\\n  @classmethod\\n  def c(cls, data): return {"a": data}'), V.model_validate(5)
exec('class V(p.BaseModel):\\n  a: int\\n  @p.computed_field\\n  @property\\n  def twice(self) -> int: return self.a * 2\\n  @p.field_serializer("a")\\n  def s(self, v): return str(v)'), V(a=1).model_dump(), V(a=1).model_dump_json(), V.model_json_schema(mode='serialization')
exec('class N(p.BaseModel):\\n  name: str\\n  kids: list["N"] = []'), N.model_validate({'name': 'a', 'kids': [{'name': 'b'}]}), N.model_json_schema()
exec('class N(p.BaseModel):\\n  name: str\\n  kids: list["N"] = []'), N.model_validate({'name': 'a', 'kids': [{'name': 1}, {'kids': 5}]})
exec('class R(p.RootModel[list[int]]): pass'), R([1, '2']), R.model_validate_json('[1]').model_dump_json()
exec('T = t.TypeVar("T")\\nclass G(p.BaseModel, t.Generic[T]):\\n  items: list[T]'), G[int](items=['1']), G[int].__name__, G[int](items=['x'])
exec('class A(p.BaseModel):\\n  x: int = p.Field(validation_alias=p.AliasChoices("y", p.AliasPath("z", 0)), serialization_alias="w")'), A(y=1), A(z=[3]).model_dump(by_alias=True), A(x=1)
exec('class D(p.BaseModel):\\n  model_config = p.ConfigDict(from_attributes=True)\\n  x: int'), D.model_validate(type("O", (), {"x": "4"})())
exec('class W(p.BaseModel):\\n  model_config = p.ConfigDict(validate_assignment=True)\\n  x: int'), W(x=1).__setattr__("x", "y")
exec('class P(p.BaseModel):\\n  x: int\\n  _hidden: int = p.PrivateAttr(default=3)'), P(x=1)._hidden, repr(P(x=1)), P(x=1).__pydantic_private__
exec('class U(p.BaseModel):\\n  model_config = p.ConfigDict(use_enum_values=True)\\n  c: Color'), U(c='red').c, U(c=Color.BLUE).model_dump()
exec('class S(p.BaseModel):\\n  a: t.Annotated[d.datetime, p.PlainSerializer(lambda v: v.year)]\\n  b: t.Annotated[int, p.WrapSerializer(lambda v, h: h(v) + 1)] = 1'), S(a='2024-01-01').model_dump_json()
p.create_model('M', a=(dict[str, list[tuple[int, t.Literal['x']]]], ...))(a={'k': [(1, 'x'), ('2', 'y')]})
p.TypeAdapter(t.Annotated[Cat | Dog, p.Field(discriminator='kind')]).json_schema()
p.TypeAdapter(tuple[int, str]).json_schema(), p.TypeAdapter(d.timedelta).json_schema(), p.TypeAdapter(decimal.Decimal).json_schema(), p.TypeAdapter(p.Json[int]).json_schema()
p.TypeAdapter(p.conlist(int, min_length=2)).json_schema(), p.TypeAdapter(t.Literal[1, 'a']).json_schema(), p.TypeAdapter(Data).json_schema()
__import__('pydantic_core').to_json({'a': 1, 'b': d.date(2024, 1, 1)}, indent=2), __import__('pydantic_core').from_json('[1, {"a": null}]'), __import__('pydantic_core').to_jsonable_python({1: {2}, 'p': pathlib.Path('/a')})
__import__('pydantic_core').from_json('[1, "a', allow_partial=True), __import__('pydantic_core').from_json(b'"\\\\u00e9"'), __import__('pydantic_core').from_json('[NaN]')
__import__('pydantic_core').from_json('[1, 2')
__import__('pydantic_core').to_json(object())
__import__('pydantic_core').__version__
"""


def _lines(text: str) -> Iterator[str]:
    yield from (line for line in text.splitlines() if line.strip())


def _made(chance: random.Random) -> Iterator[str]:
    for pattern, text in REGEX:
        yield f"import regex; regex.findall({pattern!r}, {text!r})"
    for line in _lines(REGEX_CALLS):
        yield f"import regex; {line}"
    for line in _lines(RPDS):
        yield f"import rpds, pickle; {line}"
    for line in _lines(AIOHTTP):
        call, _, shown = line.partition(" | ")
        yield (
            "import aiohttp\nasync def main():\n  form = aiohttp.FormData()\n  form.add_field('f', b'abc', filename='n.txt')\n"
            f"  async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as s:\n    r = {call}\n    return {shown}\nmain()"
        )
    for value in ORJSON_VALUES:
        yield f"{ORJSON_SETUP}orjson.dumps({value})"
        option = " | ".join(f"orjson.{one}" for one in chance.sample(ORJSON_OPTIONS, chance.randint(1, 4)))
        yield f"{ORJSON_SETUP}orjson.dumps({value}, option={option})"
    for option, value in itertools.product(ORJSON_OPTIONS, chance.sample(ORJSON_VALUES, 4)):
        yield f"{ORJSON_SETUP}orjson.dumps({value}, default=str, option=orjson.{option})"
    for text in ORJSON_TEXTS:
        yield f"{ORJSON_SETUP}orjson.loads({text})"
    for text in ("orjson.dumps(object(), default=lambda one: 5)", "orjson.dumps(object(), default=lambda one: one)", "orjson.dumps(1, option=1 << 20)",
                 "orjson.dumps(1, 2)", "orjson.dumps()", "orjson.Fragment(b'{}')", "orjson.dumps({'a': orjson.Fragment('[1]')})",
                 "issubclass(orjson.JSONDecodeError, ValueError), issubclass(orjson.JSONEncodeError, TypeError)"):  # fmt: skip
        yield ORJSON_SETUP + text
    zones = "UTC Europe/Paris America/New_York Asia/Kolkata Australia/Lord_Howe Africa/Casablanca Asia/Kathmandu Pacific/Apia Etc/GMT+5".split()
    for _ in range(40):
        moment = chance.randrange(-10**9, 4 * 10**9)
        how = chance.choice(("isoformat()", "tzname()", "dst()", "strftime('%c %Z %z')", "timestamp()", "fold", "replace(fold=1).utcoffset()"))
        yield f"import datetime as d, zoneinfo; d.datetime.fromtimestamp({moment}, zoneinfo.ZoneInfo({chance.choice(zones)!r})).{how}"
    numbers = ["1.10", "-3", "1E+5", "0.000123456789", "12345678901234567890.5", "NaN", "Infinity", "-0", "9.999999999999999999999999995"]
    for _ in range(40):
        one, two = chance.choice(numbers), chance.choice(numbers)
        how = chance.choice(["{0} + {1}", "{0} * {1}", "{0} / {1}", "{0} // {1}", "{0} % {1}", "{0}.compare({1})", "{0}.quantize({1})", "f'{{{0}:.3e}} {{{1}:,.2f}}'", "{0}.to_eng_string()", "{0} ** 2", "{0} == {1}", "{0} < {1}", "{0}.fma({1}, 2)"])
        yield "import decimal; " + how.format(f'decimal.Decimal("{one}")', f'decimal.Decimal("{two}")')
    for line in _lines(PYDANTIC):
        yield f"{PYDANTIC_SETUP}{line}" if line.startswith(("str(", "caught(")) else f"{PYDANTIC_SETUP}tried(lambda: ({line}))" if not line.startswith("exec") else _classes(line)
    for kind in TYPES:
        for value in chance.sample(INPUTS, 6):
            yield f"{PYDANTIC_SETUP}tried(lambda: p.TypeAdapter({kind}).validate_python({value}))"
        texts = [one for one in INPUTS if one.startswith(("'", "1", "0"))]
        yield f"{PYDANTIC_SETUP}tried(lambda: p.TypeAdapter({kind}).validate_json(json.dumps({chance.choice(texts)})))"
        yield f"{PYDANTIC_SETUP}tried(lambda: p.TypeAdapter({kind}).validate_python({chance.choice(INPUTS)}, strict=True))"
        yield f"{PYDANTIC_SETUP}tried(lambda: p.TypeAdapter({kind}).json_schema())"
        yield f"{PYDANTIC_SETUP}a = p.TypeAdapter({kind}); tried(lambda: a.dump_json(a.validate_python({chance.choice(INPUTS)})))"


def _classes(line: str) -> str:
    """An expression that makes a class first."""
    made, _, used = line.partition("'), ")
    return f"{PYDANTIC_SETUP}{made}', globals()); tried(lambda: ({used}))"


def expressions() -> list[str]:
    blocks = (one.strip() for one in BLOCKS.split("---\n") if one.strip())
    found = [*_lines(LINES), *_lines(ARCHIVES), *blocks, *_lines(HTTP), *_lines(ALONE), *_made(random.Random(SEED))]
    return list(dict.fromkeys(found))


ALONE = r"""
import anyio.to_process; anyio.to_process.run_sync(abs, -1)
import os; os.fork()
import os; os.execv("/bin/true", ["true"])
import curses; curses.initscr()
import queue; queue.Queue().get()
import threading; threading.Event().wait()
input()
import sys; sys.stdin.readline()
import asyncio; asyncio.get_running_loop().add_reader(0, print)
import uvicorn; uvicorn.run("x:y")
import anyio.from_thread; anyio.from_thread.start_blocking_portal().__enter__()
import multiprocessing; multiprocessing.Pool(2).map(abs, [1, -2])
import asyncio; asyncio.Event().wait()
"""
"""What would end or disturb a server outside of a plugin. Within, it has to be refused."""
REFUSED = Path(__file__).with_name("refused.txt")
"""Written by `same.py --record`."""


def alone() -> set[str]:
    return set(_lines(ALONE))


def refused() -> list[str]:
    """What a plugin refuses in a sentence. Nothing else may be refused."""
    return [json.loads(line) for line in REFUSED.read_text(encoding="utf-8").splitlines()]


DIFFERENT: dict[str, tuple[tuple[int, int], str]] = {
    'import datetime as d; d.date(2024, 3, 1).strftime("%A %d %B %Y %G-%V %e %-d %y %%"), d.datetime(999, 1, 1).strftime("%Y"), d.time(1, 2, 3, 4).strftime("%f %H")':
        ((3, 14), "a year before 1000 has four digits"),
    "import os; os.process_cpu_count() and 1": ((3, 13), "the function is new"),
}
"""What is different before a version of Python, and why."""
