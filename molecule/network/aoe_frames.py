# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs a command and counts the ATA over Ethernet requests that leave an interface meanwhile, by what they carry.

usage: aoe_frames.py INTERFACE BLOCK COMMAND...

Prints one line of JSON: ``sectors`` (how many requests carried each number of sectors of 512 bytes), ``requests``, ``whole_percent`` (the
share of requests that carry a multiple of BLOCK bytes) and ``dropped``. The exit status is not 0 if the command failed, if there was
no request, or if the kernel dropped packets, since then the figures are none.

The packets are taken out of the socket while the command runs: one that waits there keeps its buffer from the driver of the initiator,
which has 256 of them and does nothing at all when they are gone.

Sources: the header of AoE (drivers/block/aoe/aoe.h), its buffers (skb_pool_get in aoecmd.c), packet(7).
Packets that go out are seen by a socket for all protocols only.
"""

from __future__ import annotations

import ctypes
import json
import select
import socket
import struct
import subprocess
import sys

ALL, AOE = 0x0003, 0x88A2
RESPONSE, ATA = 0x08, 0
#: READ SECTORS and WRITE SECTORS, and both with 48 bits of address.
TRANSFERS = (0x20, 0x24, 0x30, 0x34)
HEADER = 36
#: Not in the socket module: linux/if_packet.h, asm-generic/socket.h.
SOL_PACKET, PACKET_STATISTICS, SO_ATTACH_FILTER, SO_RCVBUFFORCE = 263, 6, 26, 33
#: Requests of ATA, cut after their header, so that counting them does not cost what is counted: load, compare and return of linux/filter.h.
FILTER = (
    (0x28, 0, 0, 12),
    (0x15, 0, 5, AOE),
    (0x30, 0, 0, 14),
    (0x45, 3, 0, RESPONSE),
    (0x30, 0, 0, 19),
    (0x15, 0, 1, ATA),
    (0x06, 0, 0, HEADER),
    (0x06, 0, 0, 0),
)
ROOM = 64 << 20


def main() -> int:
    interface, block, command = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as packets:
        program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in FILTER))
        packets.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("HL", len(FILTER), ctypes.addressof(program)))
        packets.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, ROOM)
        packets.bind((interface, ALL))
        packets.setblocking(False)
        process = subprocess.Popen(command, stdout=sys.stderr)
        sectors: dict[int, int] = {}
        while process.poll() is None:
            select.select([packets], [], [], 0.2)
            count(packets, sectors)
        count(packets, sectors)
        _seen, dropped = struct.unpack("II", packets.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))
    requests = sum(sectors.values())
    whole = sum(number for size, number in sectors.items() if size * 512 % block == 0)
    result = {
        "sectors": {str(size): sectors[size] for size in sorted(sectors)},
        "requests": requests,
        "whole_percent": round(100 * whole / requests, 2) if requests else None,
        "dropped": dropped,
    }
    print(json.dumps(result))
    return process.returncode or int(dropped > 0 or not requests)


def count(packets: socket.socket, sectors: dict[int, int]) -> None:
    """Take what waits in the socket out of it: requests by their number of sectors."""
    while True:
        try:
            header, sender = packets.recvfrom(HEADER)
        except BlockingIOError:
            return
        if sender[2] == socket.PACKET_OUTGOING and len(header) >= 28 and header[27] in TRANSFERS:
            sectors[header[26]] = sectors.get(header[26], 0) + 1


if __name__ == "__main__":
    sys.exit(main())
