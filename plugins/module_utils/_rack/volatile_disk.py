# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A disk with a write cache that a power cut empties: a server of the NBD protocol between QEMU and the file of a disk.

What the guest wrote and did not flush is only in the memory of this process. When QEMU ends without saying goodbye, the process ends
too, and the memory with it; after an orderly end it writes everything out, as a drive does before it spins down.

This file is a program of its own that imports nothing of the collection: the rack passes its source to an interpreter, so that the
process outlives the module that starts it.

Source: doc/proto.md of the NBD project (fixed newstyle negotiation, simple replies).
"""

from __future__ import annotations

import os
import random
import socket
import struct
import sys
import typing as t

HONEST, LIES, TORN = "honest", "lies", "torn"
BEHAVIOURS = (HONEST, LIES, TORN)

SECTOR = 512
BLOCK = 4096

#: What a drive has of memory, about. Beyond it, the oldest block is written out, whatever the behaviour.
CAPACITY_BLOCKS = 64 * 1024 * 1024 // BLOCK

#: Seconds until a process ends to which QEMU never connected.
CONNECT_SECONDS = 120.0

_MAGIC, _OPTION_MAGIC, _REPLY_MAGIC = 0x4E42444D41474943, 0x49484156454F5054, 0x3E889045565A9
_REQUEST_MAGIC, _SIMPLE_REPLY_MAGIC = 0x25609513, 0x67446698
_FIXED_NEWSTYLE, _NO_ZEROES = 1, 2
_OPTION_EXPORT_NAME, _OPTION_ABORT, _OPTION_INFO, _OPTION_GO = 1, 2, 6, 7
_REPLY_ACK, _REPLY_INFO, _REPLY_UNSUPPORTED = 1, 3, 0x80000001
_INFO_EXPORT, _INFO_BLOCK_SIZE = 0, 3
_HAS_FLAGS, _SEND_FLUSH, _SEND_FUA = 1, 4, 8
READ, WRITE, DISCONNECT, FLUSH = 0, 1, 2, 3
FUA = 1
EIO, EINVAL = 5, 22
_LARGEST_REQUEST = 32 * 1024 * 1024


class VolatileDisk:
    """The blocks of a disk: those in the file, and newer ones in memory.

    :param descriptor: of the file, open for reading and writing.
    :param behaviour: ``honest`` writes everything out at a flush; ``lies`` acknowledges a flush and does nothing; ``torn`` is
        honest, and of a block that was not flushed some sectors are in the file already.
    """

    def __init__(self, descriptor: int, behaviour: str, capacity: int = CAPACITY_BLOCKS, seed: int | None = None) -> None:
        if behaviour not in BEHAVIOURS:
            raise ValueError(f"'{behaviour}' is not one of {', '.join(BEHAVIOURS)}")
        self.size = os.fstat(descriptor).st_size
        self._descriptor = descriptor
        self._behaviour = behaviour
        self._capacity = capacity
        self._blocks: dict[int, bytearray] = {}
        self._random = random.Random(seed)

    def read(self, offset: int, length: int) -> bytes:
        """What was written last, wherever it is."""
        data = bytearray(os.pread(self._descriptor, length, offset))
        for number in range(offset // BLOCK, (offset + length - 1) // BLOCK + 1) if self._blocks else ():
            cached = self._blocks.get(number)
            if cached is not None:
                start, end = max(offset, number * BLOCK), min(offset + length, (number + 1) * BLOCK)
                data[start - offset : end - offset] = cached[start - number * BLOCK : end - number * BLOCK]
        return bytes(data)

    def write(self, offset: int, data: bytes, *, fua: bool = False) -> None:
        """Take data into memory; ``fua`` also writes the blocks concerned out, unless the disk lies."""
        position = 0
        while position < len(data):
            number, within = divmod(offset + position, BLOCK)
            piece = data[position : position + BLOCK - within]
            block = self._blocks.pop(number, None)
            if block is None:
                block = bytearray(BLOCK) if len(piece) == BLOCK else bytearray(os.pread(self._descriptor, BLOCK, number * BLOCK).ljust(BLOCK, b"\0"))
            block[within : within + len(piece)] = piece
            self._blocks[number] = block
            if fua and self._behaviour != LIES:
                self._write_out(number)
            elif self._behaviour == TORN:
                self._tear(offset + position, piece)
            position += len(piece)
        while len(self._blocks) > self._capacity:
            self._write_out(next(iter(self._blocks)))

    def flush(self) -> None:
        """Write everything out, unless the disk lies."""
        if self._behaviour != LIES:
            self.write_everything_out()

    def write_everything_out(self) -> None:
        for number in list(self._blocks):
            self._write_out(number)

    @property
    def cached_blocks(self) -> int:
        """How many blocks a power cut would lose now."""
        return len(self._blocks)

    def _write_out(self, number: int) -> None:
        block = self._blocks[number]
        self._pwrite(bytes(block[: self.size - number * BLOCK]), number * BLOCK)
        del self._blocks[number]

    def _tear(self, offset: int, piece: bytes) -> None:
        sectors = len(piece) // SECTOR
        if sectors > 1:
            self._pwrite(piece[: self._random.randrange(1, sectors) * SECTOR], offset)

    def _pwrite(self, data: bytes, offset: int) -> None:
        done = 0
        while done < len(data):
            done += os.pwrite(self._descriptor, data[done:], offset + done)


class Gone(Exception):
    """The other side of the connection ended without saying so."""


def _receive(connection: socket.socket, length: int) -> bytes:
    data = bytearray()
    while len(data) < length:
        try:
            piece = connection.recv(length - len(data))
        except ConnectionError:
            piece = b""
        if not piece:
            raise Gone
        data += piece
    return bytes(data)


def _send(connection: socket.socket, data: bytes) -> None:
    try:
        connection.sendall(data)
    except ConnectionError:
        raise Gone from None


def negotiate(connection: socket.socket, size: int) -> bool:
    """Agree on the one export; whether the client goes on to use it."""
    flags = _HAS_FLAGS | _SEND_FLUSH | _SEND_FUA
    _send(connection, struct.pack(">QQH", _MAGIC, _OPTION_MAGIC, _FIXED_NEWSTYLE | _NO_ZEROES))
    (client_flags,) = struct.unpack(">I", _receive(connection, 4))
    while True:
        _magic, option, length = struct.unpack(">QII", _receive(connection, 16))
        payload = _receive(connection, min(length, 65536))

        def reply(kind: int, data: bytes = b"", option: int = option) -> None:
            _send(connection, struct.pack(">QIII", _REPLY_MAGIC, option, kind, len(data)) + data)

        if option == _OPTION_EXPORT_NAME:
            _send(connection, struct.pack(">QH", size, flags) + (b"" if client_flags & _NO_ZEROES else bytes(124)))
            return True
        if option in (_OPTION_INFO, _OPTION_GO) and len(payload) >= 6:
            reply(_REPLY_INFO, struct.pack(">HQH", _INFO_EXPORT, size, flags))
            reply(_REPLY_INFO, struct.pack(">HIII", _INFO_BLOCK_SIZE, SECTOR, BLOCK, _LARGEST_REQUEST))
            reply(_REPLY_ACK)
            if option == _OPTION_GO:
                return True
        elif option == _OPTION_ABORT:
            reply(_REPLY_ACK)
            return False
        else:
            reply(_REPLY_UNSUPPORTED)


class Request(t.NamedTuple):
    """What the client asks for; ``data`` are those of a write."""

    kind: int
    flags: int
    cookie: int
    offset: int
    length: int
    data: bytes

    def within(self, size: int) -> bool:
        """Whether it concerns bytes of a disk of this size, and not too many at once."""
        return self.offset + self.length <= size and self.length <= _LARGEST_REQUEST


def receive_request(connection: socket.socket) -> Request:
    """The next request.

    :raises Gone: if the connection ends, or what came is none.
    """
    magic, flags, kind, cookie, offset, length = struct.unpack(">IHHQQI", _receive(connection, 28))
    if magic != _REQUEST_MAGIC or (kind == WRITE and length > _LARGEST_REQUEST):
        raise Gone
    return Request(kind, flags, cookie, offset, length, _receive(connection, length) if kind == WRITE else b"")


def reply(connection: socket.socket, request: Request, error: int = 0, data: bytes = b"") -> None:
    """Answer a request, in any order.

    :param error: a number of the protocol.
    """
    _send(connection, struct.pack(">IIQ", _SIMPLE_REPLY_MAGIC, error, request.cookie) + data)


def serve(connection: socket.socket, disk: VolatileDisk) -> None:
    """Answer requests until the client disconnects.

    :raises Gone: if the connection ends without that.
    """
    if not negotiate(connection, disk.size):
        return
    while True:
        request = receive_request(connection)
        if request.kind == DISCONNECT:
            disk.write_everything_out()
            return
        reply(connection, request, *_carry_out(disk, request))


def _carry_out(disk: VolatileDisk, request: Request) -> tuple[int, bytes]:
    """An error number of the protocol, and what was read."""
    try:
        if request.kind == FLUSH:
            disk.flush()
            return 0, b""
        if not request.within(disk.size):
            return EINVAL, b""
        if request.kind == READ:
            return 0, disk.read(request.offset, request.length)
        if request.kind == WRITE:
            disk.write(request.offset, request.data, fua=bool(request.flags & FUA))
            return 0, b""
    except OSError:
        return EIO, b""
    return EINVAL, b""


def detach() -> None:
    """Become independent of the process that started this one; it prints the id of the process that goes on."""
    child = os.fork()
    if child:
        os.write(sys.stdout.fileno(), f"{child}\n".encode())
        os._exit(0)
    os.setsid()
    os.chdir("/")
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)


def listen(address: str) -> socket.socket:
    """A socket at this path, in place of one that was left there."""
    if os.path.lexists(address):
        os.unlink(address)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    os.chmod(address, 0o600)
    listener.listen(1)
    return listener


def main(arguments: t.Sequence[str]) -> None:
    """Serve one file to one client: the behaviour, the file, the socket."""
    behaviour, path, address = arguments
    disk = VolatileDisk(os.open(path, os.O_RDWR), behaviour)
    listener = listen(address)
    detach()
    listener.settimeout(CONNECT_SECONDS)
    try:
        connection, _peer = listener.accept()
    except socket.timeout:
        return
    finally:
        os.unlink(address)
        listener.close()
    connection.settimeout(None)
    try:
        serve(connection, disk)
    except Gone:
        return


if __name__ == "__main__":
    main(sys.argv[1:])
