"""`ssl` in name only: wharf encrypts the requests of plugins itself, so that code which configures TLS can run."""

from __future__ import annotations

import enum
import socket
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


class SSLContext:
    """Takes any configuration, and does nothing with it."""

    def __init__(self, protocol: Any = PROTOCOL_TLS, *args: Any, **kwargs: Any) -> None:
        self.protocol, self.verify_mode, self.check_hostname = protocol, VerifyMode.CERT_REQUIRED, True
        self.options, self.verify_flags = Options(0), VerifyFlags(0)
        self.minimum_version, self.maximum_version = TLSVersion.TLSv1_2, TLSVersion.MAXIMUM_SUPPORTED
        self.keylog_filename, self.post_handshake_auth, self.sslsocket_class = None, False, SSLSocket

    def _nothing(self, *args: Any, **kwargs: Any) -> None:
        return None

    load_cert_chain = load_verify_locations = load_default_certs = set_default_verify_paths = set_ciphers = _nothing
    set_alpn_protocols = set_npn_protocols = load_dh_params = set_ecdh_curve = _nothing

    def get_ca_certs(self, binary_form: bool = False) -> list[Any]:
        return []

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


def create_default_context(*args: Any, **kwargs: Any) -> SSLContext:
    return SSLContext(PROTOCOL_TLS_CLIENT)


_create_unverified_context = _create_default_https_context = create_default_context
_create_stdlib_context = create_default_context


def match_hostname(*args: Any) -> None:
    return None


def get_default_verify_paths() -> Any:
    from collections import namedtuple

    names = "cafile capath openssl_cafile_env openssl_cafile openssl_capath_env openssl_capath"
    return namedtuple("DefaultVerifyPaths", names)(None, None, "SSL_CERT_FILE", "", "SSL_CERT_DIR", "")


def DER_cert_to_PEM_cert(data: bytes) -> str:
    import base64

    return f"-----BEGIN CERTIFICATE-----\n{base64.encodebytes(data).decode()}-----END CERTIFICATE-----\n"


def inject_into_ssl() -> None:
    """Does nothing: `truststore` is this module too, and the operator decides which authorities are trusted."""


extract_from_ssl = inject_into_ssl
