# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What an application and the kernel see of a cached device while something is done to it: how long it is suspended, how long a read waits."""

from __future__ import annotations

import contextlib
import mmap
import os
import random
import signal
import struct
import time
import typing as t

_PAUSE = 0.1
_READ = 4096
_FIGURE = struct.Struct("d")


class Beside(contextlib.AbstractContextManager["Beside"]):
    """A process of the highest priority beside the code under test.

    It reads ``dm/suspended`` of every device-mapper device (Documentation/ABI/testing/sysfs-block-dm), and a random block of each
    of ``devices``, which are open only during a read: no step finds them in use because of it.

    :param devices: paths; one that is not there is tried again each time.
    :param megabytes: of a device, from its beginning, that are read.
    """

    def __init__(self, devices: t.Iterable[str] = (), megabytes: int = 8) -> None:
        self._devices = list(devices)
        self._span = megabytes * 1024**2 // _READ
        # The longest suspension and the longest read so far, and since when a read waits.
        self._figures = [mmap.mmap(-1, _FIGURE.size) for _figure in range(2)]
        self._pid = 0

    @property
    def suspended(self) -> float:
        """Seconds for which a device was suspended at most."""
        return _FIGURE.unpack(self._figures[0][: _FIGURE.size])[0]

    @property
    def waited(self) -> float:
        """Seconds that one read took at most."""
        return _FIGURE.unpack(self._figures[1][: _FIGURE.size])[0]

    def __enter__(self) -> Beside:
        self._pid = os.fork()
        if self._pid == 0:
            try:
                for number in (signal.SIGTERM, signal.SIGHUP):
                    signal.signal(number, signal.SIG_DFL)
                os.setsid()
                os.nice(-20)
                for device in self._devices:
                    if os.fork() == 0:
                        self._read(device)
                self._watch()
            finally:
                os._exit(0)
        return self

    def __exit__(self, *_arguments: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._pid, signal.SIGTERM)
        # A read of a suspended device cannot be killed: it is left to itself.
        for _attempt in range(50):
            if os.waitpid(self._pid, os.WNOHANG) != (0, 0):
                return
            time.sleep(_PAUSE)

    def _watch(self) -> None:
        since: dict[str, float] = {}
        switches: dict[str, int] = {}
        looked = 0.0
        while True:
            now = time.monotonic()
            # Everything here is paid for by the code under test, on an emulated processor.
            if now - looked > 1:
                looked = now
                switches = self._switches(switches)
            for name, switch in switches.items():
                try:
                    suspended = os.pread(switch, 1, 0) == b"1"
                except OSError:
                    # It is gone.
                    suspended = False
                if suspended:
                    self._longest(0, now - since.setdefault(name, now))
                else:
                    since.pop(name, None)
            time.sleep(_PAUSE)

    def _switches(self, known: t.Mapping[str, int]) -> dict[str, int]:
        """An open ``dm/suspended`` for each device that is there; one that is there no more is closed."""
        names = {name for name in os.listdir("/sys/block") if name.startswith("dm-")}
        found = {}
        for name, switch in known.items():
            try:
                os.pread(switch, 1, 0)
                found[name] = switch
            except OSError:
                os.close(switch)
        for name in names - set(found):
            with contextlib.suppress(OSError):
                found[name] = os.open(f"/sys/block/{name}/dm/suspended", os.O_RDONLY)
        return found

    def _read(self, device: str) -> t.NoReturn:
        buffer = mmap.mmap(-1, _READ)
        while True:
            began = time.monotonic()
            with contextlib.suppress(OSError):
                handle = os.open(device, os.O_RDONLY | os.O_DIRECT)
                try:
                    os.preadv(handle, [buffer], random.randrange(self._span) * _READ)
                finally:
                    os.close(handle)
                self._longest(1, time.monotonic() - began)
            time.sleep(0.2)

    def _longest(self, place: int, seconds: float) -> None:
        if seconds > _FIGURE.unpack(self._figures[place][: _FIGURE.size])[0]:
            self._figures[place][: _FIGURE.size] = _FIGURE.pack(seconds)
