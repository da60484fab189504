# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Simulated hosts of a fleet on this machine, each with its own state: a mount namespace with its own /sys, /dev, /etc and /run.

Real are Ansible with its local connection, the modules, their processes and files. Simulated are the devices: block devices in
sysfs are plain files, ``hdparm`` and ``udevadm`` are scripts over them, and the RAID tools are those of ``tests/simulators``.
It requires root, because every call of Python on such a host enters its namespace.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import typing as t
from pathlib import Path

from simulators import __main__ as simulators

_TESTS = Path(__file__).resolve().parent.parent
_TOOLS = Path(__file__).resolve().parent / "tools"
#: Character devices that programs need.
_NODES = {"null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9), "tty": (5, 0)}
_ETC = ("passwd", "group", "nsswitch.conf", "ld.so.cache", "localtime", "os-release")
_TIME = re.compile(r"(\d+)m([\d.]+)s")
DISKS = ("sda", "sdb", "sdc", "sdd")
_QUEUE = {
    "scheduler": "[mq-deadline] none",
    "nr_requests": "64",
    "nomerges": "0",
    "read_ahead_kb": "128",
    "rq_affinity": "1",
    "max_sectors_kb": "128",
    "max_hw_sectors_kb": "128",
    "wbt_lat_usec": "75000",
    "rotational": "1",
    "add_random": "0",
    "write_cache": "write back",
    "logical_block_size": "512",
    "physical_block_size": "4096",
    "fua": "0",
}

#: The interpreter of a host: it enters the namespace of the host, whose tools come first in PATH. What each call used of the CPU is recorded.
_PYTHON = """#!/bin/sh
[ ! -f {host}/slow ] || sleep "$(cat {host}/slow)"
[ ! -f {host}/before ] || . {host}/before
exec unshare --mount {host}/enter "$@"
"""
_ENTER = """#!/bin/sh
for folder in sys dev etc run var; do mount --bind {host}/$folder /$folder || exit 1; done
PATH={host}/bin:/usr/sbin:/usr/bin:/sbin:/bin CACHEFLEET_SIMULATED_HOST={host} {python} "$@"
rc=$?
times >> {host}/cpu
exit $rc
"""
_LAUNCHER = """#!/bin/sh
# This is NOT the vendor's tool: it is a simulator of cachefleet.storage for tests, with no controller behind it.
CACHEFLEET_SIMULATORS={host}/simulators {python} -S {tests}/simulators/call.py {called} "$@"
rc=$?
times >> {host}/tools.cpu
exit $rc
"""

#: The configuration that `site` brings about on a new host: four layers.
LAYERS: dict[str, t.Any] = {
    "drive_write_cache_drives": [{"device": f"/dev/disk/by-id/ata-SIMULATED_{disk.upper()}", "write_cache": "disabled"} for disk in DISKS],
    "raid_cache_controllers": [
        {"provider": "storcli", "id": 0, "volumes": [{"id": "all", "read": "none", "write": "writethrough", "io": "direct", "drive_cache": "disabled"}]},
        {
            "provider": "arcconf",
            "id": 1,
            "maxcache": {"flush_and_fetch_rate": 200, "read_write_balance": {"read": 5, "write": 4}},
            "volumes": [{"id": "all", "read": "none", "write": "writethrough", "maxcache": {"read": True, "write": "disabled"}}],
        },
    ],
    "block_queue_devices": [
        {"device": f"/dev/disk/by-id/ata-SIMULATED_{disk.upper()}", "scheduler": "none", "nr_requests": 32, "read_ahead_kb": 1024} for disk in DISKS
    ],
}


def missing_requirement() -> str:
    """Why hosts cannot be simulated here, or an empty text."""
    if os.geteuid() != 0:
        return "Simulated hosts require root, because each of them has a mount namespace."
    made = subprocess.run(["unshare", "--mount", "true"], capture_output=True, text=True, check=False)
    return "" if made.returncode == 0 else f"This machine does not allow mount namespaces: {made.stderr.strip()}"


class SimulatedHost:
    """One host below its folder, as it leaves the factory.

    :param folder: must be on a file system with device nodes, and its path must be free of blanks.
    """

    def __init__(self, folder: Path, python: str = sys.executable) -> None:
        self.folder = folder
        self.name = folder.name
        for name in ("sys/block", "sys/class/block", "dev/disk/by-id", "etc/udev/rules.d", "run", "var/lib", "var/tmp", "bin", "simulators"):
            (folder / name).mkdir(parents=True)
        for name in _ETC:
            if Path("/etc", name).exists():
                shutil.copy(Path("/etc", name), folder / "etc" / name)
        for name, number in _NODES.items():
            self._node(name, stat.S_IFCHR, number)
        records = [self._disk(index, name) for index, name in enumerate(DISKS)]
        (folder / "udev").write_text("\n\n".join(records) + "\n")
        self._script(folder / "python", _PYTHON, python)
        self._script(folder / "enter", _ENTER, python)
        for tool in _TOOLS.iterdir():
            (folder / "bin" / tool.name).symlink_to(tool)
        for command, kind in (("storcli64", "storcli"), ("arcconf", "arcconf")):
            self._script(folder / "bin" / command, _LAUNCHER, python, called=simulators.called(kind))
        with self._simulators():
            simulators.add("storcli", "MegaRAID 9361-8i", {"volumes": 2, "os_devices": [{"path": "/dev/sdm"}, {"path": "/dev/sdn"}]})
            simulators.add("arcconf", "Adaptec ASR-81605ZQ", {"volumes": 2, "drives": 8, "ssds": 3, "maxcache": True})

    def become_copy_of(self, other: SimulatedHost) -> None:
        """Take over the state of another host of this module, as if it had been configured in the same way."""
        shutil.rmtree(self.folder)
        subprocess.run(["cp", "--archive", str(other.folder), str(self.folder)], check=True)
        texts = [self.folder / "python", self.folder / "enter", *self.folder.glob("bin/*"), *self.folder.glob("etc/udev/rules.d/*")]
        for path in [path for path in texts if not path.is_symlink()]:
            path.write_text(path.read_text().replace(str(other.folder), str(self.folder)))
        for name in ("cpu", "tools.cpu"):
            (self.folder / name).unlink(missing_ok=True)

    @property
    def variables(self) -> dict[str, t.Any]:
        """For the inventory; the configuration is that of the group."""
        return {"ansible_python_interpreter": str(self.folder / "python")}

    def set_fault(self, tool: str, fault: str, value: bool = True) -> None:
        """Break a RAID tool, or repair it."""
        with self._simulators():
            simulators.set_fault(tool, fault, value)

    def break_tool(self, tool: str, *, broken: bool = True) -> None:
        """Have ``hdparm`` or ``udevadm`` end with an error, or repair it."""
        path = self.folder / "bin" / tool
        path.unlink()
        if not broken:
            path.symlink_to(_TOOLS / tool)
            return
        path.write_text("#!/bin/sh\necho 'Segmentation fault' >&2\nexit 139\n")
        path.chmod(0o755)

    def set_delay(self, seconds: float) -> None:
        """Make each call of Python on this host late."""
        (self.folder / "slow").write_text(str(seconds))

    def remove_when_closed(self, path: Path) -> None:
        """Before each call of Python on this host, remove a file that no process has open: with a /sys made of files, only new files are measured."""
        (self.folder / "before").write_text(f"find /proc/[0-9]*/fd -lname '{path}' 2>/dev/null | grep -q . || rm -f '{path}'\n")

    def calls(self, tool: str) -> list[list[str]]:
        """How a RAID tool was called, oldest first."""
        place = self.folder / "simulators" / f"{tool}.calls"
        return [json.loads(line) for line in place.read_text().splitlines()] if place.exists() else []

    def cpu(self) -> tuple[int, float, float]:
        """How often Python was called, the seconds of CPU of these calls, and those of the simulated RAID tools among them."""
        calls, tools = (self._times(name) for name in ("cpu", "tools.cpu"))
        return len(calls), sum(calls), sum(tools)

    def _times(self, name: str) -> list[float]:
        """The user and system time of each call, as the shell prints them: ``0m0.31s 0m0.04s``, a line of its own and one of what it called."""
        path = self.folder / name
        lines = path.read_text().splitlines() if path.exists() else []
        return [sum(60 * float(minutes) + float(seconds) for minutes, seconds in _TIME.findall(line)) for line in lines[1::2]]

    @contextlib.contextmanager
    def _simulators(self) -> t.Iterator[None]:
        name = simulators.simulator.FOLDER_VARIABLE
        before = os.environ.get(name)
        os.environ[name] = str(self.folder / "simulators")
        try:
            yield
        finally:
            os.environ.pop(name)
            if before is not None:
                os.environ[name] = before

    def _script(self, path: Path, text: str, python: str, called: str = "") -> None:
        path.write_text(text.format(host=self.folder, python=python, tests=_TESTS, called=called))
        path.chmod(0o755)

    def _node(self, name: str, kind: int, number: tuple[int, int]) -> None:
        path = self.folder / "dev" / name
        os.mknod(path, kind | 0o666, os.makedev(*number))
        path.chmod(0o666)

    def _disk(self, index: int, name: str) -> str:
        """A SATA disk whose write cache is enabled; what udev knows of it."""
        place = self.folder / f"sys/devices/pci0000:00/0000:00:1f.2/ata{index}/host{index}/target{index}:0:0/{index}:0:0:0/block/{name}"
        files = {"dev": f"8:{16 * index}", "size": "976773168", "ro": "0", "removable": "0", **{f"queue/{key}": value for key, value in _QUEUE.items()}}
        files["mq/0/nr_tags"] = "32"
        device = place.parents[1]
        of_device = {"model": "SIMULATED", "vendor": "ATA", "queue_depth": "32", f"scsi_disk/{index}:0:0:0/cache_type": "write back"}
        adapter = {f"scsi_host/host{index}/can_queue": "32"}
        for folder, contents in ((place, files), (device, of_device), (place.parents[3], adapter)):
            for key, value in contents.items():
                (folder / key).parent.mkdir(parents=True, exist_ok=True)
                (folder / key).write_text(value + "\n")
        for empty in ("slaves", "holders"):
            (place / empty).mkdir()
        drivers = self.folder / "sys/bus/drivers/ahci"
        drivers.mkdir(parents=True, exist_ok=True)
        # Links are relative: below the folder they lead to the same place as in the namespace of the host.
        self._link(place.parents[3] / "driver", drivers)
        self._link(place / "device", device)
        for group in ("sys/class/block", "sys/block"):
            self._link(self.folder / group / name, place)
        self._node(name, stat.S_IFBLK, (8, 16 * index))
        link = f"disk/by-id/ata-SIMULATED_{name.upper()}"
        (self.folder / "dev" / link).symlink_to(f"../../{name}")
        properties = {"SUBSYSTEM": "block", "DEVNAME": f"/dev/{name}", "DEVTYPE": "disk", "DEVLINKS": f"/dev/{link}", "ID_SERIAL_SHORT": name.upper()}
        return "\n".join([f"P: /{place.relative_to(self.folder / 'sys')}", f"N: {name}", *(f"E: {key}={value}" for key, value in properties.items())])

    @staticmethod
    def _link(link: Path, target: Path) -> None:
        link.symlink_to(os.path.relpath(target, link.parent))


def make_hosts(folder: Path, count: int, prefix: str = "host") -> list[SimulatedHost]:
    """:param count: hosts ``host001`` and so on in ``folder``."""
    return [SimulatedHost(folder / f"{prefix}{number:03}") for number in range(1, count + 1)]


def inventory_of(hosts: t.Iterable[SimulatedHost], variables: t.Mapping[str, t.Any], unreachable: t.Container[str] = ()) -> dict[str, t.Any]:
    """An inventory in JSON.

    :param variables: of all hosts, such as :data:`LAYERS`.
    :param unreachable: names of hosts at whose address nothing answers.
    """
    gone = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1, "ansible_ssh_common_args": "-o ConnectTimeout=5"}
    common = {"ansible_connection": "local", "ansible_become": False, **variables}
    return {"all": {"hosts": {host.name: {**host.variables, **(gone if host.name in unreachable else {})} for host in hosts}, "vars": common}}
