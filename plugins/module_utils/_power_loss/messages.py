# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a writer and its witness send each other.

The witness sends a challenge. The writer answers with who it is, authenticated with the secret of the run. Every further message has a
fixed length and a code over itself and its number in the session, so that none can be made up, repeated or left out.

Both hold the secret, and nothing that is sent reveals it (HMAC, RFC 2104). What is sent is not encrypted: it says which blocks were
written, not what is in them.
"""

from __future__ import annotations

import hmac
import json
import os
import socket
import struct
import time
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core import json_text
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, NotUnderstood, Refused

CHALLENGE_BYTES = 32
SECRET_BYTES = 32

#: Kinds of messages: a write was acknowledged after its sync; writes are under way; the writer ended by itself.
ACKNOWLEDGED, PROGRESS, ENDED = 1, 2, 3
_KINDS = (ACKNOWLEDGED, PROGRESS, ENDED)

_LENGTH = struct.Struct(">I")
_BODY = struct.Struct(">BQQIQ")
_CODE_BYTES = 16
MESSAGE_BYTES = _BODY.size + _CODE_BYTES
#: Of a greeting, whoever sends it: a path in it has at most 4096 characters.
_GREETING = json_text.Limits(size=65536, depth=8, values=200, containers=20)


def read_secret(text: str | None) -> bytes:
    """The secret of a run from its hexadecimal digits, which the message does not repeat.

    :raises BadInput: if it is not one.
    """
    try:
        secret = bytes.fromhex(text or "")
    except ValueError:
        secret = b""
    if len(secret) != SECRET_BYTES:
        raise BadInput(f"The secret of a run must have {2 * SECRET_BYTES} hexadecimal digits.", item="secret")
    return secret


class Message(t.NamedTuple):
    """One message of a writer. ``length`` in bytes; ``time`` in ns of the monotonic clock of the host, after the sync returned."""

    kind: int
    sequence: int = 0
    offset: int = 0
    length: int = 0
    time: int = 0


class Session:
    """The codes of one connection; both sides count the messages.

    :param secret: of the run.
    :param challenge: of this connection.
    """

    def __init__(self, secret: bytes, challenge: bytes) -> None:
        self._key = _code(secret, b"session" + challenge)
        self._count = 0

    def pack(self, message: Message) -> bytes:
        body = _BODY.pack(*message)
        return body + self._next_code(body)

    def unpack(self, data: bytes) -> Message:
        """:raises Refused: if the message is not the next one of the writer."""
        body = data[: _BODY.size]
        if not hmac.compare_digest(self._next_code(body), data[_BODY.size :]):
            raise Refused("A message that does not come from the writer was received: the connection is closed.")
        message = Message(*_BODY.unpack(body))
        if message.kind not in _KINDS:
            raise NotUnderstood(f"The writer sent a message of the unknown kind {message.kind}: writer and witness must be of one version of the collection.")
        return message

    def _next_code(self, body: bytes) -> bytes:
        self._count += 1
        return _code(self._key, self._count.to_bytes(8, "big") + body)[:_CODE_BYTES]


def _code(key: bytes, data: bytes) -> bytes:
    return hmac.digest(key, data, "sha256")


def receive(connection: socket.socket, length: int, deadline: float) -> bytes:
    """Exactly so many bytes; fewer if the connection ends.

    :param deadline: of the monotonic clock, however slowly the bytes come.
    :raises OSError: if it has passed.
    """
    data = bytearray()
    while len(data) < length:
        # At least something: 0 stands for a connection that does not wait at all.
        connection.settimeout(max(deadline - time.monotonic(), 0.001))
        piece = connection.recv(length - len(data))
        if not piece:
            break
        data += piece
    return bytes(data)


def greet(connection: socket.socket, secret: bytes, greeting: t.Mapping[str, t.Any], seconds: float) -> Session:
    """The writer's part of the beginning.

    :param greeting: the run and its device.
    :param seconds: for each of the two answers of the witness.
    :raises Refused: if the witness does not accept this writer.
    """
    challenge = receive(connection, CHALLENGE_BYTES, time.monotonic() + seconds)
    if len(challenge) != CHALLENGE_BYTES:
        raise Refused("The witness closed the connection: it accepts only the hosts of its play.")
    text = json.dumps(greeting, sort_keys=True).encode()
    connection.sendall(_LENGTH.pack(len(text)) + text + _code(secret, challenge + text))
    if receive(connection, 1, time.monotonic() + seconds) != b"\x01":
        raise Refused("The witness refused this writer: the secret, or the run, is not the one it was started with, or this host answered too late.")
    return Session(secret, challenge)


def accept(connection: socket.socket, secret_of: t.Callable[[str], bytes | None], seconds: float) -> tuple[Session, dict[str, t.Any]]:
    """The witness's part of the beginning. The caller answers the writer once its log is open (:data:`WELCOME`).

    :param secret_of: the secret of a run by its id in hexadecimal digits.
    :param seconds: for all of it, however slowly its bytes come.
    :raises Refused: if the writer does not know it.
    """
    deadline = time.monotonic() + seconds
    challenge = os.urandom(CHALLENGE_BYTES)
    connection.sendall(challenge)
    head = receive(connection, _LENGTH.size, deadline)
    length = _LENGTH.unpack(head)[0] if len(head) == _LENGTH.size else 0
    if not 0 < length <= _GREETING.size:
        raise Refused("A client connected that is not a writer.")
    text, code = receive(connection, length, deadline), receive(connection, 32, deadline)
    try:
        greeting = json_text.loads(text, _GREETING)
        secret = secret_of(greeting["run"])
    except (NotUnderstood, KeyError, TypeError):
        raise Refused("A client connected that is not a writer.") from None
    if secret is None or not hmac.compare_digest(_code(secret, challenge + text), code):
        raise Refused("A client connected that does not know the secret of the run.")
    return Session(secret, challenge), greeting


WELCOME = b"\x01"
