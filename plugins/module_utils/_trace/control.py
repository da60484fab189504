# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Starting, stopping, packing and removing a trace on this host.

The recorder is a service of systemd with limits, which also removes the instance of tracing if the recorder is killed. It needs neither the task that
started it nor the controller. Source: systemd-run(1), systemd.service(5), systemd.resource-control(5).
"""

from __future__ import annotations

import os
import shutil
import sys
import typing as t
import zipfile
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.background_process import is_alive, wait_for_end
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, CommandFailed, Refused, StorageError, ToolMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.journal import Journal
from ansible_collections.cachefleet.storage.plugins.module_utils._core.own_files import READABLE, new_file
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import MIB, SECTOR, format_size, parse_size
from ansible_collections.cachefleet.storage.plugins.module_utils._device.discovery import read_devices
from ansible_collections.cachefleet.storage.plugins.module_utils._device.sysfs import read_number
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell_key import component
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.observation.status import ENDED, read_status
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.spool import Spool, SpoolError, sha256_of
from ansible_collections.cachefleet.storage.plugins.module_utils._trace import tracefs
from ansible_collections.cachefleet.storage.plugins.module_utils._trace.counting import TracedDevice
from ansible_collections.cachefleet.storage.plugins.module_utils._trace.format import RECORD, REQUESTS_FILE, TRACE_FILE
from ansible_collections.cachefleet.storage.plugins.module_utils._trace.recorder import ORDER_FILE

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import Devices

#: The same text is the default of the options; traces and measurements do not wait for each other.
FOLDER = "/var/lib/cachefleet/traces"
_CODE, _MAIN = ".recorder.zip", "__main__.py"
_PACKAGE = "ansible_collections.cachefleet.storage.plugins.module_utils"
#: Seconds, and minutes of all devices together, which is what ``trace.json`` grows with.
_LONGEST, _MINUTES = 7 * 86400, 30_000
_MOST_DEVICES = 64
_LEAST_BYTES, _MOST_BYTES = MIB, 1024 * MIB
#: Bytes of the file system that are left to others.
_LEFT = 64 * MIB
#: The recorder has half of a processor, and with the buffers of the kernel 64 MiB at most.
_LIMITS = ("MemoryMax=44M", "MemorySwapMax=0", "CPUQuota=50%", "Nice=10", "OOMScoreAdjust=500", "TasksMax=8", "TimeoutStopSec=30")
_STARTING, _ENDING = 120.0, 60.0


class TraceRun:
    """A trace on this host.

    :raises BadInput: if its name cannot be a folder.
    """

    def __init__(self, folder: str, name: str, runner: Runner, root: Path = Path("/")) -> None:
        self.spool = Spool(root / folder.lstrip("/"), component(name, "trace"))
        self.home, self.name, self.runner, self.root = self.spool.home, name, runner, root
        self.unit = f"cachefleet-trace-{name}.service"
        self._order = Journal(self.home / ORDER_FILE, dict, durable=False)

    @property
    def running(self) -> bool:
        return is_alive(read_status(self.home))

    def start(self, options: t.Mapping[str, t.Any], *, check_mode: bool) -> dict[str, t.Any]:
        """Start recording; nothing is done if the same trace is recorded already, or was recorded and waits to be fetched.

        :raises StorageError: if that is not possible: nothing was changed then.
        """
        self.spool.require_own()
        if not options["devices"]:
            return {"changed": False, **self.described()}
        order = self._requested(options, read_devices(self.runner, self.root, dm_targets=False))
        before = self._order.read()
        # Without a status it was never recorded: the task that was starting it has ended.
        if before is not None and read_status(self.home):
            if {**before, "tracefs": ""} != {**order, "tracefs": ""}:
                raise Refused(f"{self.home} on this host has a trace of that name with other options: fetch or remove it, or use another name.", item=self.name)
            return {"changed": False, **self.described()}
        order["tracefs"] = str(self._verified())
        if check_mode:
            return {"changed": True, **self.described()}
        self.spool.make()
        self._require_space(order["bytes"])
        try:
            self._launch(order)
        except BaseException:
            shutil.rmtree(self.home, ignore_errors=True)
            raise
        return {"changed": True, **self.described()}

    def _requested(self, options: t.Mapping[str, t.Any], devices: Devices) -> dict[str, t.Any]:
        """:raises StorageError: for what is wrong in the options."""
        size, seconds = parse_size(options["bytes"], self.name, "bytes"), options["seconds"]
        if not _LEAST_BYTES <= size <= _MOST_BYTES:
            raise BadInput(f"bytes must be between {format_size(_LEAST_BYTES)} and {format_size(_MOST_BYTES)}.", item="bytes")
        if not 1 <= seconds <= _LONGEST:
            raise BadInput(f"seconds must be between 1 and {_LONGEST}.", item="seconds")
        found = [traced_device(path, devices, self.root) for path in options["devices"]]
        numbers = {one.number for one in found}
        if len(numbers) < len(found):
            raise BadInput(f"devices must name each device only once: {', '.join(options['devices'])}.", item="devices")
        if len(found) > _MOST_DEVICES or len(found) * seconds > _MINUTES * 60:
            raise BadInput(
                f"{len(found)} devices cannot be recorded for {seconds:g} seconds: at most {_MOST_DEVICES} devices, and {_MINUTES:,} minutes of all devices"
                " together.",
                item="devices",
            )
        return {
            "name": self.name,
            "host": options["host"],
            "seconds": seconds,
            "bytes": size // RECORD.size * RECORD.size,
            "devices": [dict(vars(one)) for one in found],
        }

    def _verified(self) -> Path:
        """The tracefs, if this host can record.

        :raises StorageError: otherwise.
        """
        if not (self.root / "run/systemd/system").is_dir():
            raise ToolMissing("This host is not run by systemd, whose limits and cleanup a recording needs: nothing was started.")
        self.runner.find("systemd-run")
        instance = tracefs.Instance(tracefs.find(self.root), self.name)
        if instance.folder.exists():
            raise Refused(f"{instance.folder} exists on this host: another trace of that name is recorded, or rmdir it if none is.", item=self.name)
        return instance.tracefs

    def _require_space(self, size: int) -> None:
        found = os.statvfs(self.home)
        # A sample that is halved exists twice for a moment.
        needed = 2 * size + _LEFT
        if found.f_bavail * found.f_frsize < needed:
            self.home.rmdir()
            raise SpoolError(
                f"The file system of {self.home} on this host has {format_size(found.f_bavail * found.f_frsize)} free, and {format_size(needed)} are needed:"
                " free space, or set a lower limit of bytes.",
                item=self.name,
            )

    def _launch(self, order: t.Mapping[str, t.Any]) -> None:
        """:raises CommandFailed: if the recorder did not begin; it has ended then."""
        self._order.write(order)
        pack_code(self.home / _CODE)
        instance = tracefs.Instance(Path(order["tracefs"]), self.name).folder
        # The leading minus: without a failure of the unit, as the recorder has removed both already if it ended by itself.
        properties = [
            "Type=notify",
            f"RuntimeMaxSec={int(order['seconds']) + 120}",
            f"TimeoutStartSec={int(_STARTING)}",
            *_LIMITS,
            f"ExecStopPost=-{self.runner.find('rmdir')} {instance}",
            # Drafts of files that were being written.
            f"ExecStopPost=-{self.runner.find('find')} {self.home} -maxdepth 1 -type f -name .* -delete",
        ]
        command = [sys.executable, "-I", "-S", "-B", str(self.home / _CODE), str(self.home)]
        options = [f"--property={one}" for one in properties]
        try:
            self.runner.run(
                ["systemd-run", "--quiet", "--collect", f"--unit={self.unit}", "--description=Records the I/O of devices", *options, *command],
                timeout=_STARTING + 30,
                item=self.name,
            )
        except StorageError as error:
            self.runner.run(["systemctl", "stop", self.unit], ok=None, timeout=_ENDING)
            message = read_status(self.home).get("message")
            raise CommandFailed(message or f"The recorder did not start on this host: {error.message}", item=self.name, completed=error.completed) from None

    def stop(self, *, check_mode: bool) -> dict[str, t.Any]:
        """End the recording; what was recorded stays.

        :raises CommandFailed: if it does not end.
        """
        self.spool.require_own()
        running = self.running
        if running and not check_mode:
            status = read_status(self.home)
            self.runner.run(["systemctl", "stop", self.unit], ok=None, timeout=_ENDING + 30)
            if not wait_for_end(status, _ENDING):
                raise CommandFailed(f"The recorder of {self.name} does not end: see systemctl status {self.unit} on this host.", item=self.name)
        return {"changed": running, **self.described()}

    def pack(self, *, check_mode: bool) -> dict[str, t.Any]:
        """Make the files of a trace that has ended readable for the user of the connection.

        :raises Refused: while it is recorded.
        """
        self.spool.require_own()
        if self.running and not check_mode:
            raise Refused(f"The trace {self.name} is still being recorded on this host: wait for its end, or stop it (state: stopped).", item=self.name)
        paths = [self.home / name for name in (TRACE_FILE, REQUESTS_FILE)]
        files = {}
        for path in paths if not check_mode and all(one.exists() for one in paths) else ():
            path.chmod(READABLE)
            files[path.name] = {"size": path.stat().st_size, "sha256": sha256_of(path)}
        return {"changed": False, **self.described(), "files": files}

    def remove(self, *, check_mode: bool) -> dict[str, t.Any]:
        """End the recording, and remove what was recorded."""
        exists = self.home.exists()
        if exists and not check_mode:
            self.stop(check_mode=False)
            shutil.rmtree(self.home)
        return {"changed": exists, **self.described()}

    def described(self) -> dict[str, t.Any]:
        status = read_status(self.home)
        running = is_alive(status)
        state = str(status.get("state") or "")
        if status and not running and state not in ENDED:
            state, status["message"] = "failed", "The recorder on this host ended unexpectedly, for example by a signal or a reboot."
        return {"running": running, "state": state, "message": str(status.get("message") or ""), "folder": str(self.home)}


def traced_device(path: str, devices: Devices, root: Path) -> TracedDevice:
    """What is recorded of a device.

    :raises DeviceMissing: if it is not there.
    """
    device = devices.resolve(path)
    disk = (devices.get(device.parent) if device.parent else None) or device
    major, minor = map(int, disk.number.split(":"))
    start = (read_number(root / "sys/class/block" / device.name / "start") or 0) if disk is not device else 0
    # Only devices with request queues of their own issue requests: not those of device-mapper, md and bcache.
    is_disk = (root / "sys/class/block" / disk.name / "mq").is_dir()
    return TracedDevice(path, device.number, major << 20 | minor, start, device.size // SECTOR, is_disk)


def pack_code(path: Path) -> None:
    """Write what the recorder imports into an archive that Python runs: the one of this task is removed when it ends."""
    with os.fdopen(new_file(path), "wb") as stream, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        folders: set[Path] = set()
        for name, module in sorted(sys.modules.items()):
            if name.startswith(f"{_PACKAGE}.") and not hasattr(module, "__path__"):
                place = Path(name.replace(".", "/"))
                archive.writestr(f"{place}.py", module.__loader__.get_source(name))
                folders |= set(place.parents)
        for folder in sorted(folders):
            archive.writestr(str(folder / "__init__.py"), "")
        archive.writestr(_MAIN, f"import pathlib, sys\nfrom {_PACKAGE}._trace.recorder import main\nsys.exit(main(pathlib.Path(sys.argv[1])))\n")
