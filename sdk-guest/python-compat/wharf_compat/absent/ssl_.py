"""`ssl` in name only: wharf encrypts the requests of plugins itself, so that code which configures TLS can run. What would change who is trusted,
or what a server learns of the client, is an error."""

from __future__ import annotations

import base64
import calendar
import enum
import os
import socket
import time
from typing import Any


class SSLError(OSError):
    """Never raised: wharf reports why a request failed."""

    reason = library = ""


class SSLZeroReturnError(SSLError): ...


class SSLWantReadError(SSLError): ...


class SSLWantWriteError(SSLError): ...


class SSLSyscallError(SSLError): ...


class SSLEOFError(SSLError): ...


class SSLCertVerificationError(SSLError, ValueError): ...


CertificateError = SSLCertVerificationError


class Purpose(enum.Enum):
    SERVER_AUTH = "1.3.6.1.5.5.7.3.1"
    CLIENT_AUTH = "1.3.6.1.5.5.7.3.2"


class VerifyMode(enum.IntEnum):
    CERT_NONE, CERT_OPTIONAL, CERT_REQUIRED = 0, 1, 2


class TLSVersion(enum.IntEnum):
    MINIMUM_SUPPORTED, SSLv3, TLSv1, TLSv1_1, TLSv1_2, TLSv1_3, MAXIMUM_SUPPORTED = -2, 768, 769, 770, 771, 772, -1


class Options(enum.IntFlag):
    OP_ALL, OP_NO_SSLv2, OP_NO_SSLv3, OP_NO_TLSv1, OP_NO_TLSv1_1, OP_NO_TLSv1_2, OP_NO_TLSv1_3 = 1, 2, 4, 8, 16, 32, 64
    OP_NO_COMPRESSION, OP_NO_TICKET, OP_IGNORE_UNEXPECTED_EOF, OP_SINGLE_DH_USE, OP_SINGLE_ECDH_USE = 128, 256, 512, 1024, 2048
    OP_CIPHER_SERVER_PREFERENCE, OP_LEGACY_SERVER_CONNECT, OP_ENABLE_KTLS = 4096, 8192, 16384


class VerifyFlags(enum.IntFlag):
    VERIFY_DEFAULT, VERIFY_X509_PARTIAL_CHAIN, VERIFY_X509_STRICT, VERIFY_X509_TRUSTED_FIRST = 0, 1, 2, 4


class AlertDescription(enum.IntEnum):
    ALERT_DESCRIPTION_CLOSE_NOTIFY = 0


for _enum in (VerifyMode, Options, VerifyFlags, AlertDescription):
    globals().update({name: one for name, one in _enum.__members__.items()})

PROTOCOL_SSLv23 = PROTOCOL_TLS = 2
PROTOCOL_TLS_CLIENT, PROTOCOL_TLS_SERVER, PROTOCOL_TLSv1, PROTOCOL_TLSv1_1, PROTOCOL_TLSv1_2 = 16, 17, 3, 4, 5
HAS_SNI = HAS_ALPN = HAS_TLSv1_2 = HAS_TLSv1_3 = HAS_ECDH = True
HAS_NPN = HAS_SSLv2 = HAS_SSLv3 = HAS_TLSv1 = HAS_TLSv1_1 = HAS_PSK = HAS_NEVER_CHECK_COMMON_NAME = False
OPENSSL_VERSION, OPENSSL_VERSION_INFO, OPENSSL_VERSION_NUMBER = "OpenSSL 3.0.0 (wharf)", (3, 0, 0, 0, 0), 0x30000000
SOCK_STREAM = getattr(socket, "SOCK_STREAM", 1)


OWN = "inside of a plugin, wharf encrypts: it takes the operator's authorities, and no certificates of clients"


class SSLContext:
    """Takes configuration that wharf's own encryption fulfils."""

    def __init__(self, protocol: Any = PROTOCOL_TLS, *args: Any, **kwargs: Any) -> None:
        self.protocol, self.verify_flags = protocol, VerifyFlags(0)
        is_client = protocol == PROTOCOL_TLS_CLIENT
        self._verify, self._check = (VerifyMode.CERT_REQUIRED, True) if is_client else (VerifyMode.CERT_NONE, False)
        self.options = Options(0)
        self.minimum_version, self.maximum_version = TLSVersion.TLSv1_2, TLSVersion.MAXIMUM_SUPPORTED
        self.keylog_filename, self.post_handshake_auth, self.sslsocket_class = None, False, SSLSocket

    @property
    def verify_mode(self) -> VerifyMode:
        return self._verify

    @verify_mode.setter
    def verify_mode(self, value: Any) -> None:
        # wharf verifies certificates in any case.
        if value == VerifyMode.CERT_NONE and self._check:
            raise ValueError("Cannot set verify_mode to CERT_NONE when check_hostname is enabled.")
        self._verify = VerifyMode(value)

    @property
    def check_hostname(self) -> bool:
        return self._check

    @check_hostname.setter
    def check_hostname(self, value: bool) -> None:
        self._check = bool(value)
        if value and self._verify == VerifyMode.CERT_NONE:
            self._verify = VerifyMode.CERT_REQUIRED

    def _nothing(self, *args: Any, **kwargs: Any) -> None:
        return None

    load_default_certs = set_default_verify_paths = set_alpn_protocols = set_npn_protocols = load_dh_params = set_ecdh_curve = _nothing

    def load_cert_chain(self, certfile: Any, keyfile: Any = None, password: Any = None) -> None:
        for one in (certfile, keyfile):
            if one is not None:
                open(one, "rb").close()
        raise SSLError(f"a certificate of the client cannot be used: {OWN}")

    def load_verify_locations(self, cafile: Any = None, capath: Any = None, cadata: Any = None) -> None:
        """Checks that the file is there. Only the operator's authorities count."""
        if cafile is None and capath is None and not cadata:
            raise TypeError("cafile, capath and cadata cannot be all omitted")
        if cafile is not None:
            open(cafile, "rb").close()

    def set_ciphers(self, ciphers: str) -> None:
        if not any(one in ciphers.upper() for one in ("ECDH", "AES", "HIGH", "DEFAULT", "ALL", "CHACHA", "GCM", "TLS", "DHE")):
            raise SSLError("No cipher can be selected.")

    def get_ciphers(self) -> Any:
        raise SSLError(f"ciphers cannot be listed: {OWN}")

    def get_ca_certs(self, binary_form: bool = False) -> Any:
        raise SSLError(f"authorities cannot be listed: {OWN}")

    cert_store_stats = session_stats = get_ca_certs  # type: ignore[assignment]

    def wrap_socket(self, *args: Any, **kwargs: Any) -> Any:
        from ..runtime.loop import NO_SOCKETS

        raise OSError(NO_SOCKETS)

    wrap_bio = wrap_socket


class SSLSocket(socket.socket):
    """Never made."""


class SSLObject:
    """Never made."""


class MemoryBIO:
    """Never used."""


class SSLSession:
    """Never made."""


def create_default_context(purpose: Any = Purpose.SERVER_AUTH, *, cafile: Any = None, capath: Any = None, cadata: Any = None) -> SSLContext:
    made = SSLContext(PROTOCOL_TLS_CLIENT if purpose == Purpose.SERVER_AUTH else PROTOCOL_TLS_SERVER)
    if cafile or capath or cadata:
        made.load_verify_locations(cafile, capath, cadata)
    return made


def _create_unverified_context(*args: Any, **kwargs: Any) -> SSLContext:
    made = create_default_context()
    made.check_hostname, made.verify_mode = False, VerifyMode.CERT_NONE
    return made


_create_default_https_context = create_default_context
_create_stdlib_context = _create_unverified_context


def get_default_verify_paths() -> Any:
    from collections import namedtuple

    names = "cafile capath openssl_cafile_env openssl_cafile openssl_capath_env openssl_capath"
    return namedtuple("DefaultVerifyPaths", names)(None, None, "SSL_CERT_FILE", "", "SSL_CERT_DIR", "")


HEADER, FOOTER = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"


def DER_cert_to_PEM_cert(data: bytes) -> str:
    text = base64.b64encode(data).decode("ascii")
    return "\n".join([HEADER, *(text[at : at + 64] for at in range(0, len(text), 64)), FOOTER]) + "\n"


def PEM_cert_to_DER_cert(text: str) -> bytes:
    if not text.startswith(HEADER):
        raise ValueError(f"Invalid PEM encoding; must start with {HEADER}")
    if not text.strip().endswith(FOOTER):
        raise ValueError(f"Invalid PEM encoding; must end with {FOOTER}")
    return base64.decodebytes(text.strip()[len(HEADER) : -len(FOOTER)].encode("ASCII", "strict"))


def cert_time_to_seconds(text: str) -> int:
    months = "jan feb mar apr may jun jul aug sep oct nov dec".split()
    month = text[:3].lower()
    if month not in months or not text.endswith(" GMT"):
        raise ValueError(f"time data {text!r} does not match format \"%b %d %H:%M:%S %Y GMT\"")
    found = time.strptime(text[3:], " %d %H:%M:%S %Y GMT")
    return calendar.timegm((found[0], months.index(month) + 1, *found[2:6]))


def RAND_bytes(count: int) -> bytes:
    return os.urandom(count)


def RAND_status() -> bool:
    return True


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module 'ssl' has no attribute {name!r} inside of a plugin: wharf encrypts requests itself")


def inject_into_ssl() -> None:
    """Does nothing: `truststore` is this module too, and the operator decides which authorities are trusted."""


extract_from_ssl = inject_into_ssl
