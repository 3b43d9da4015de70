"""`keyring`: a plugin has no store of passwords, so each function fails as the package does on a machine without one."""

from __future__ import annotations

from typing import Any


class KeyringError(Exception):
    pass


class NoKeyringError(KeyringError, RuntimeError):
    pass


class PasswordSetError(KeyringError):
    pass


class PasswordDeleteError(KeyringError):
    pass


class InitError(KeyringError):
    pass


class KeyringLocked(KeyringError):
    pass


def _missing(*args: Any, **kwargs: Any) -> Any:
    raise NoKeyringError("there is no keyring inside of a plugin")


get_password = set_password = delete_password = get_credential = get_keyring = set_keyring = _missing
