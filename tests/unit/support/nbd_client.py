# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""As much of a client of the NBD protocol as tests need."""

from __future__ import annotations

import socket
import struct


class NbdClient:
    """A client that has opened the only export of a server."""

    def __init__(self, connection):
        self.socket = connection
        self.receive(18)
        self.socket.sendall(struct.pack(">IQII", 3, 0x49484156454F5054, 8, 0))
        assert struct.unpack(">QIII", self.receive(20))[2] == 0x80000001
        self.socket.sendall(struct.pack(">QIIIH", 0x49484156454F5054, 7, 6, 0, 0))
        replies = [self.option_reply() for _reply in range(3)]
        self.size = struct.unpack(">HQH", replies[0])[1]

    def receive(self, length):
        return self.socket.recv(length, socket.MSG_WAITALL)

    def option_reply(self):
        return self.receive(struct.unpack(">QIII", self.receive(20))[3])

    def send(self, kind, offset=0, length=0, data=b"", flags=0, cookie=7):
        self.socket.sendall(struct.pack(">IHHQQI", 0x25609513, flags, kind, cookie, offset, length) + data)

    def answer(self, length=0):
        """The error, the cookie, and data of a read."""
        magic, error, cookie = struct.unpack(">IIQ", self.receive(16))
        assert magic == 0x67446698
        return error, cookie, self.receive(length) if length else b""

    def request(self, kind, offset=0, length=0, data=b"", flags=0, answer=0):
        self.send(kind, offset, length, data, flags)
        error, cookie, received = self.answer(answer)
        assert cookie == 7
        return error, received

    def end(self, orderly):
        if orderly:
            self.send(2)
        self.socket.close()
