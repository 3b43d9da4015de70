#!/usr/bin/env python3
"""Answers HTTP requests from a file, as a proxy, so that a server and its plugin see the same web without a network.

    tests/existing/canned.py ANSWERS.toml [--folder DIR]

Listens on a free port of 127.0.0.1 and prints one line: {"port": …, "ca": "…/ca.pem"}. It answers requests of clients that use
it as their proxy, for https:// with certificates of that authority, made for each host, and connects nowhere. It ends when its
stdin does.

The file has a table for each answer; the first one that fits is sent. `*` in `url` stands for any characters:

    [[answer]]
    url = "https://api.example.com/items?page=*"   # without `?`, any query fits
    method = "GET"                                  # any, if absent
    status = 200
    headers = { content-type = "application/json" } # the default, for a body that is JSON
    body = '{"items": []}'                          # or: file = "page.html", in the folder of the file

Any other request gets 404, with a body that names it. Needs the package `cryptography`.
"""

from __future__ import annotations

import argparse
import datetime
import ipaddress
import json
import re
import ssl
import sys
import tempfile
import threading
import tomllib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID


class Authority:
    """Makes certificates for hosts, and keeps them in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "canned answers")])
        self.made: dict[str, ssl.SSLContext] = {}
        self.lock = threading.Lock()
        usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
        certificate = (
            self.begun(self.name, self.key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .sign(self.key, hashes.SHA256())
        )
        self.certificate = certificate
        self.pem = folder / "ca.pem"
        self.pem.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def begun(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.timezone.utc)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self.name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=30))
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False)
        )

    def context(self, host: str) -> ssl.SSLContext:
        """Returns what answers TLS for a host."""
        with self.lock:
            if host not in self.made:
                key = ec.generate_private_key(ec.SECP256R1())
                try:
                    names: list[x509.GeneralName] = [x509.IPAddress(ipaddress.ip_address(host))]
                except ValueError:
                    names = [x509.DNSName(host)]
                certificate = (
                    self.begun(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host[:64])]), key)
                    .add_extension(x509.SubjectAlternativeName(names), critical=False)
                    .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
                    .sign(self.key, hashes.SHA256())
                )
                kept = self.folder / f"host-{len(self.made)}.pem"
                private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
                kept.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
                made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                made.load_cert_chain(kept)
                self.made[host] = made
            return self.made[host]


def fits(pattern: str, url: str) -> bool:
    if "?" not in pattern:
        url = url.split("?", 1)[0]
    return re.fullmatch(".*".join(re.escape(piece) for piece in pattern.split("*")), url, re.DOTALL) is not None


def answers(file: Path) -> list[dict[str, Any]]:
    """Reads a file of answers, and the bodies that it names."""
    found = tomllib.loads(file.read_text(encoding="utf-8")).get("answer", [])
    for one in found:
        body = (file.parent / one["file"]).read_bytes() if "file" in one else one.get("body", "").encode()
        guessed = "application/json" if body[:1] in (b"{", b"[") else "text/html; charset=utf-8" if body[:1] == b"<" else "text/plain; charset=utf-8"
        one["bytes"] = body
        one["headers"] = {"content-type": guessed, **{name.lower(): value for name, value in one.get("headers", {}).items()}}
    return found


def handler(known: list[dict[str, Any]], authority: Authority, log: bool) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Headers and body are written apart; with the algorithm, the body would wait 40 ms.
        disable_nagle_algorithm = True
        timeout = 60
        origin = ""

        def log_message(self, format: str, *args: Any) -> None:
            pass

        def do_CONNECT(self) -> None:
            host, _, port = self.path.rpartition(":")
            host = host.strip("[]")
            self.send_response(200)
            self.end_headers()
            self.wfile.flush()
            self.connection = authority.context(host).wrap_socket(self.connection, server_side=True)
            self.rfile, self.wfile = self.connection.makefile("rb"), self.connection.makefile("wb", buffering=0)
            self.origin = f"https://{host}" + (f":{port}" if port != "443" else "")
            self.close_connection = False

        def answer(self) -> None:
            if "chunked" in self.headers.get("transfer-encoding", "").lower():
                while size := int(self.rfile.readline().split(b";")[0], 16):
                    self.rfile.read(size + 2)
                self.rfile.readline()
            else:
                self.rfile.read(int(self.headers.get("content-length") or 0))
            url = self.origin + self.path
            found = next((one for one in known if one.get("method", self.command) == self.command and fits(one["url"], url)), None)
            if log:
                print(f"{self.command} {url}: {found['url'] if found else 'no answer'}", file=sys.stderr, flush=True)
            if found is None:
                found = {"status": 404, "headers": {"content-type": "text/plain"}, "bytes": f"no answer for {self.command} {url}\n".encode()}
            self.send_response_only(found.get("status", 200))
            for name, value in found["headers"].items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(found["bytes"])))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(found["bytes"])

        do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = answer

    return Handler


class Proxy(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away, or does not trust the authority, is not a fault of the proxy."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("answers", type=Path)
    parser.add_argument("--folder", type=Path, help="where the certificates are written; else a folder that is removed at the end")
    parser.add_argument("--log", action="store_true", help="writes each request to stderr")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="canned-") as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        authority = Authority(folder.resolve())
        proxy = Proxy(("127.0.0.1", 0), handler(answers(options.answers), authority, options.log))
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        print(json.dumps({"port": proxy.server_address[1], "ca": str(authority.pem)}), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
