# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Signatures of certificates with keys of OpenSSH, in the file ``.sig`` next to each.

Source: ssh-keygen(1), ``-Y sign`` and ``-Y verify``. ``-Y check-novalidate`` only shows that some key made the signature: it is not used. What is
signed and verified goes through the standard input, so that nothing asks whether a file may be overwritten. An empty passphrase is given, so that
nothing asks for one; a key with a passphrase can be used by an agent.
"""

from __future__ import annotations

import os
import re
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import Completed, StorageError, TimedOut, ToolMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.files import replacing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import plain
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.accept.certificate import LIMITS
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.reading import explained
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.untrusted import read_limited

NAMESPACE = "cachefleet"

#: Seconds for one signature: a security key waits to be touched.
LIMIT = 60.0

_LARGEST_SIGNATURE = 64 * 1024
_BEGIN = "-----BEGIN SSH SIGNATURE-----"
#: What is no reason: the end of every failure, what is being done, and a frame.
_NO_REASON = re.compile(r"Could not verify signature|Signing data|@|Good ")
_REASONS = (
    ("incorrect passphrase", "the key has a passphrase: add it to ssh-agent, or give a key without one"),
    ("UNPROTECTED", "other users may read the key: remove their permission (chmod 600)"),
    ("No private key found", "it has no private key, and no agent has it"),
)


def signature_of(path: Path) -> Path:
    """Where the signature of a certificate is."""
    return path.with_name(f"{path.name}.sig")


def sign(path: Path, key: str, runner: Runner | None = None) -> str | None:
    """Sign a certificate.

    :param key: the file of a private key, or of a public key whose private key is in an agent.
    :returns: why it could not be signed, as a sentence; ``None`` if it is signed.
    """
    if "\n" in key or "PRIVATE KEY" in key:
        return "The key to sign certificates must be the path of a file, not the key itself."
    if not _is_file(key):
        return f"The key {plain(key)} to sign certificates is not a file that can be read."
    done = _run(["-Y", "sign", "-n", NAMESPACE, "-P", "", "-f", _path(key)], path, runner)
    if isinstance(done, str):
        return f"{plain(path)} cannot be signed: {done}."
    if done.rc or not done.stdout.startswith(_BEGIN):
        return f"{plain(path)} cannot be signed with {plain(key)}: {_reason(done)}."
    try:
        with explained(path.parent, "writing a signature"), replacing(signature_of(path), 0o644, durable=False) as stream:
            stream.write(done.stdout)
    except StorageError as error:
        return error.message
    return None


def verify(path: Path, allowed_signers: str, identity: str, runner: Runner | None = None) -> str | None:
    """Verify the signature of a certificate: made by this identity with a key that it is allowed now, in our namespace.

    :param allowed_signers: the file of the keys that are trusted, and by whom: ssh-keygen(1), ALLOWED SIGNERS.
    :param identity: whose key must have made it.
    :returns: why it is not verified, as a sentence; ``None`` if it is.
    """
    if not identity.strip() or not identity.isprintable() or not _is_file(allowed_signers):
        return f"Signatures cannot be verified: give an identity, and the file of allowed signers ({plain(allowed_signers)} is not one that can be read)."
    signature = signature_of(path)
    if not signature.is_file():
        return f"{plain(path)} is not signed: there is no {plain(signature.name)}."
    try:
        read_limited(signature, _LARGEST_SIGNATURE)
    except StorageError as error:
        return f"{plain(path)} is not verified: {error.message}."
    done = _run(["-Y", "verify", "-n", NAMESPACE, "-f", _path(allowed_signers), "-I", identity, "-s", _path(str(signature))], path, runner)
    if isinstance(done, str):
        return f"{plain(path)} is not verified: {done}."
    reason = _reason(done) or f"its key is not one of those that {plain(allowed_signers)} allows {plain(identity)}"
    return f"{plain(path)} is not verified: {reason}." if done.rc else None


def _is_file(name: str) -> bool:
    try:
        path = Path(name).expanduser()
        return path.is_file() and os.access(path, os.R_OK)
    except (OSError, RuntimeError):
        return False


def _path(name: str) -> str:
    """Absolute, so that it is not an option."""
    return str(Path(name).expanduser().absolute())


def _run(arguments: t.Sequence[str], path: Path, runner: Runner | None) -> Completed | str:
    """What ssh-keygen did with the content of a certificate, or why it did nothing, as a clause."""
    try:
        content = read_limited(path, LIMITS.size).decode()
        runner = runner or Runner()
        # Else a window may ask for the passphrase.
        words = ["env", "SSH_ASKPASS_REQUIRE=never", runner.find("ssh-keygen"), *arguments]
        return runner.run(words, ok=None, timeout=LIMIT, stdin=content)
    except UnicodeDecodeError:
        return "it is not UTF-8"
    except ToolMissing:
        return "the command ssh-keygen is missing on the controller: install the client of OpenSSH"
    except TimedOut:
        return f"ssh-keygen did not end within {LIMIT:g} seconds and was stopped"
    except StorageError as error:
        return plain(error.message, 500).rstrip(".")


def _reason(done: Completed) -> str:
    """The first line that is a reason, as a clause; empty if there is none."""
    for sign_of, reason in _REASONS:
        if sign_of in done.stderr:
            return reason
    lines = (plain(line).rstrip(".") for line in done.stderr.splitlines() if not _NO_REASON.match(line))
    return next(filter(None, lines), "")
