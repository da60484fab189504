# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A controller with its volumes as one process between QEMU and the files of the volumes, in real time.

Each volume is a socket of the NBD protocol, whose messages are those of ``plugins/module_utils/_rack/volatile_disk.py``. A further socket reads and changes
the settings, with a JSON object in each line: ``{"get": true}``, ``{"volume": "v0", "write": "writeback", "read_ahead": true}``,
``{"drive": "d0", "write_cache": false}``, ``{"battery": "failed"}``, ``{"max_cache": {"write": "writethrough", "rate": 100}}``. The answer, ``{"ok": true}``
or ``{"error": "busy"}``, comes when the change is complete, as with the tools of controllers, and has the ``id`` of the command.

When a client ends without saying goodbye, the power is off: the process ends at once, and what is in memory is lost.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import json
import os
import select
import socket
import time
import typing as t
from pathlib import Path

from .array import Array
from .clock import Busy, Clock, Process
from .controller import Controller, Volume
from .drive import IDLE, Drive
from .max_cache import MaxCache
from .rows import BLOCK, CONTROLLERS, DRIVES, SLOWER, SMALLER, scaled
from .store import CacheModule, Store

_SPEC = importlib.util.spec_from_file_location("volatile_disk", Path(__file__).resolve().parents[3] / "plugins/module_utils/_rack/volatile_disk.py")
assert _SPEC and _SPEC.loader
nbd = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(nbd)


class Rig:
    """A controller, its drives and volumes.

    :param description: ``controller``, a name of ``rows.CONTROLLERS``; ``drives``, by name with ``model`` and ``write_cache``; ``volumes``, by name with
        ``level``, ``drives``, ``file``, ``socket`` and ``write``; ``control``, a socket; ``module`` and ``settings``, files that survive a power cut;
        ``slower`` and ``smaller``; ``max_cache`` with ``drives``, ``volume``, ``size`` in bytes, ``read``, ``write`` and ``rate``.
    """

    def __init__(self, clock: Clock, description: t.Mapping[str, t.Any]) -> None:
        slower, smaller = description.get("slower", SLOWER), description.get("smaller", SMALLER)
        self.clock, self._settings = clock, Path(description["settings"])
        self.module = CacheModule(description["module"])
        self.controller = Controller(clock, scaled(CONTROLLERS[description["controller"]], slower, smaller), self.module)
        self.drives: dict[str, Drive] = {}
        for name, drive in description["drives"].items():
            self.drives[name] = Drive(clock, scaled(DRIVES[drive["model"]], slower, smaller), drive.get("size", 0), IDLE * slower / smaller)
            self.drives[name].write_cache = drive.get("write_cache", True)
        self.stores: dict[str, Store] = {}
        for name, volume in description["volumes"].items():
            self.stores[name] = Store(volume["file"])
            drives = [self.drives[drive] for drive in volume["drives"]]
            Volume(self.controller, name, volume["level"], drives, policy=volume.get("write", "writethrough"))
        if "max_cache" in description:
            self._attach_max_cache(description["max_cache"])
        self._restore()

    def _attach_max_cache(self, wanted: t.Mapping[str, t.Any]) -> None:
        volume = self.controller.volumes[wanted["volume"]]
        drives = [self.drives[name] for name in wanted["drives"]]
        ssds = Array(self.clock, "1" if len(drives) > 1 else "0", drives, self.controller.command)
        options = {key: wanted[key] for key in ("read", "write", "rate") if key in wanted}
        volume.max_cache = MaxCache(self.clock, volume.array, ssds, wanted["size"], **options)

    def _restore(self) -> None:
        """The settings of the controller, and what its cache has kept, which is written out now."""
        if self._settings.exists():
            saved = json.loads(self._settings.read_text())
            self.controller.battery = saved["battery"]
            for name, enabled in saved["drives"].items():
                self.drives[name].write_cache = enabled
            for name, volume in saved["volumes"].items():
                self.controller.volumes[name].policy, self.controller.volumes[name].read_ahead = volume
        for name, number, data in self.module.kept():
            self.controller.volumes[name].restore(number, self.stores[name].take(number, data))

    def save(self) -> None:
        """Note the settings as durably as a controller does."""
        volumes = {name: [volume.policy, volume.read_ahead] for name, volume in self.controller.volumes.items()}
        drives = {name: drive.write_cache for name, drive in self.drives.items()}
        partial = self._settings.with_suffix(".new")
        partial.write_text(json.dumps({"battery": self.controller.battery, "drives": drives, "volumes": volumes}))
        partial.replace(self._settings)

    def state(self) -> dict[str, t.Any]:
        """What a tool reads."""
        controller = self.controller
        return {
            "controller": controller.row.name,
            "battery": controller.battery,
            "protection": controller.row.protection,
            "dirty_blocks": controller.used,
            "drives": {name: {**_shown(drive, _DRIVE), "model": drive.row.name} for name, drive in self.drives.items()},
            "volumes": {name: _shown(volume, _VOLUME) for name, volume in controller.volumes.items()},
            "max_cache": {name: _shown(volume.max_cache, _MAX_CACHE) for name, volume in controller.volumes.items() if volume.max_cache},
        }

    def change(self, wanted: dict[str, t.Any]) -> Process:
        """Carry out a command.

        :raises Busy: if what it changes is being changed.
        :raises ValueError, KeyError: if it is none.
        """
        volumes = self.controller.volumes
        if "volume" in wanted:
            return volumes[wanted.pop("volume")].change(**wanted)
        if "drive" in wanted:
            return self.drives[wanted.pop("drive")].change(**wanted)
        if "max_cache" in wanted:
            (cache,) = [volume.max_cache for volume in volumes.values() if volume.max_cache]
            return cache.change(**wanted["max_cache"])
        self.controller.set_battery(wanted["battery"])
        return self.clock.together([])


_DRIVE = ("write_cache", "changing", "volatile_blocks")
_VOLUME = ("level", "policy", "mode", "read_ahead", "changing", "dirty_blocks")
_MAX_CACHE = ("read_enabled", "write_policy", "rate", "changing", "dirty_blocks")


def _shown(one: object, names: t.Iterable[str]) -> dict[str, t.Any]:
    return {name: getattr(one, name) for name in names}


class Server:
    """The sockets of a rig, and its time."""

    def __init__(self, description: t.Mapping[str, t.Any]) -> None:
        self._clock, self._begun = Clock(), time.monotonic()
        self._rig = Rig(self._clock, description)
        #: What is waited for, and what to do then.
        self._readers: dict[socket.socket, t.Callable[[], None]] = {}
        for name, volume in description["volumes"].items():
            listener = nbd.listen(volume["socket"])
            self._readers[listener] = functools.partial(self._accept, listener, name)
        control = nbd.listen(description["control"])
        self._readers[control] = functools.partial(self._accept_control, control)
        #: Clients; None before the first.
        self._clients: int | None = None

    def run(self) -> None:
        """Serve until every client has said goodbye.

        :raises nbd.Gone: if one went without.
        """
        while self._clients != 0:
            if self._clients is None and self._time() > nbd.CONNECT_SECONDS:
                raise nbd.Gone
            due = self._clock.next
            # Not epoll, whose time limits are whole milliseconds.
            ready, _writable, _failed = select.select(list(self._readers), [], [], 1.0 if due is None else min(1.0, max(0.0, due - self._time())))
            self._pass_time()
            for one in ready:
                if one in self._readers:
                    self._readers[one]()
            self._pass_time()
        for store in self._rig.stores.values():
            store.commit_all()
        self._rig.module.lose()

    def _time(self) -> float:
        return time.monotonic() - self._begun

    def _pass_time(self) -> None:
        now = self._time()
        self._clock.run(now)
        self._clock.now = max(self._clock.now, now)

    def _accept(self, listener: socket.socket, name: str) -> None:
        connection, _peer = listener.accept()
        del self._readers[listener]
        listener.close()
        self._clients = (self._clients or 0) + 1
        if nbd.negotiate(connection, self._rig.stores[name].size):
            self._readers[connection] = functools.partial(self._request, connection, name)
        else:
            self._goodbye(connection, name)

    def _goodbye(self, connection: socket.socket, name: str) -> None:
        self._readers.pop(connection, None)
        self._rig.stores[name].commit_all()
        self._clients = (self._clients or 0) - 1

    def _request(self, connection: socket.socket, name: str) -> None:
        request = nbd.receive_request(connection)
        if request.kind == nbd.DISCONNECT:
            self._goodbye(connection, name)
        else:
            self._clock.start(self._carry_out(connection, request, self._rig.controller.volumes[name], self._rig.stores[name]))

    def _carry_out(self, connection: socket.socket, request: t.Any, volume: Volume, store: Store) -> Process:
        error, answer = 0, b""
        first, last = request.offset // BLOCK, (request.offset + max(1, request.length) - 1) // BLOCK
        if request.kind == nbd.FLUSH:
            yield from volume.flush()
        elif request.kind not in (nbd.READ, nbd.WRITE) or not request.within(store.size) or not request.length:
            error = nbd.EINVAL
        elif request.kind == nbd.READ:
            yield from volume.read(first, last - first + 1)
            answer = store.read(request.offset, request.length)
        else:
            yield from volume.write(first, store.write(request.offset, request.data), forced=bool(request.flags & nbd.FUA))
        nbd.reply(connection, request, error, answer)

    def _accept_control(self, listener: socket.socket) -> None:
        connection, _peer = listener.accept()
        self._readers[connection] = functools.partial(self._command, connection, bytearray())

    def _command(self, connection: socket.socket, received: bytearray) -> None:
        piece = b""
        with contextlib.suppress(ConnectionError):
            piece = connection.recv(65536)
        received += piece
        if not piece:
            del self._readers[connection]
            connection.close()
        while b"\n" in received:
            line, _newline, rest = bytes(received).partition(b"\n")
            received[:] = rest
            self._clock.start(self._answer(connection, line))

    def _answer(self, connection: socket.socket, line: bytes) -> Process:
        name = None
        try:
            wanted = json.loads(line)
            name = wanted.pop("id", None)
            answer: dict[str, t.Any] = {"ok": True}
            if "get" in wanted:
                answer = self._rig.state()
            else:
                yield from self._rig.change(wanted)
                self._rig.save()
        except Busy:
            answer = {"error": "busy"}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            answer = {"error": str(error)}
        # The command is carried out, whether or not its sender still listens.
        if connection in self._readers:
            with contextlib.suppress(ConnectionError):
                connection.sendall(json.dumps({**answer, **({} if name is None else {"id": name})}).encode() + b"\n")


def main(path: str) -> None:
    """Serve the controller that a JSON file describes, independent of what started it; the process ID is printed."""
    server = Server(json.loads(Path(path).read_text()))
    nbd.detach()
    try:
        server.run()
    except nbd.Gone:
        os._exit(1)
