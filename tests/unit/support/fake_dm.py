# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host with device-mapper, MD and systemd that lives in memory, whose caches hold real blocks: a stale or lost one is seen."""

from __future__ import annotations

import dataclasses
import json
import shlex
import struct
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import boot_unit
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import ToolMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Completed
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices, Signature
from ansible_collections.cachefleet.storage.tests.unit.support.fake_modules import load_modules
from ansible_collections.cachefleet.storage.tests.unit.support.unit_links import disable_unit, enable_unit

MIB = 1024**2
SECTOR = 512
HDD, SSD, SSD1 = "/dev/disk/by-id/ata-HDD0", "/dev/disk/by-id/ata-SSD0", "/dev/disk/by-id/ata-SSD1"
_DISKS = {
    "sda": BlockDevice(name="sda", path="/dev/sda", number="8:0", size=4096 * MIB, by_id=(HDD,), serial="HDD0", rotational=True),
    "sdb": BlockDevice(name="sdb", path="/dev/sdb", number="8:16", size=1024 * MIB, by_id=(SSD,), serial="SSD0", rotational=False),
    "sdc": BlockDevice(name="sdc", path="/dev/sdc", number="8:32", size=1024 * MIB, by_id=(SSD1,), serial="SSD1", rotational=False),
}
_MAGIC = {"cache": (32, struct.pack("<Q", 0o6142003)), "writecache": (0, struct.pack("<I", 0x23489321))}
#: Commands that change nothing.
READING = {("dmsetup", "info"), ("dmsetup", "table"), ("dmsetup", "status"), ("dmsetup", "targets")}
_READING_TOOLS = ("wipefs", "blkid", "udevadm", "pvs", "lvmconfig", "modprobe")


class Killed(BaseException):
    """What SIGKILL is to a process."""


@dataclasses.dataclass
class Mapped:
    """One device of device-mapper; ``live`` and ``waiting`` are tables as lists of words."""

    number: int
    uuid: str
    live: list[str] | None = None
    waiting: list[str] | None = None
    suspended: bool = False


class FakeDm:
    """A Runner over an HDD and two SSDs.

    :param root: where /dev, /sys and /etc of the host are.
    """

    def __init__(self, root: Path, missing: t.Container[str] = ()) -> None:
        self.root = root
        self.missing = missing
        self.mapped: dict[str, Mapped] = {}
        self.numbers = 0
        #: Fast devices whose metadata were not closed cleanly and are open since.
        self.unclean: set[str] = set()
        #: How often what is mounted was left without an answer.
        self.stood_still = 0
        #: Blocks of the origin, and of what lies on each fast device, with whether they are dirty.
        self.origin: dict[int, int] = {}
        self.stores: dict[str, dict[int, tuple[int, bool]]] = {}
        self.expected: dict[int, int] = {}
        self.signatures: dict[str, str] = {}
        #: Further disks, and what others are in place of the usual, by kernel name.
        self.other_disks: dict[str, BlockDevice] = {}
        #: Kernel modules that are installed and not loaded.
        self.installed: set[str] = set()
        self.content_block: str = ""
        #: Whether the configuration of LVM rejects every disk.
        self.lvm_rejects = False
        self.mounted: set[str] = set()
        self.gone: set[str] = set()
        self.failed: set[str] = set()
        self.needs_check = False
        self.stuck = False
        self.lies: dict[str, int] = {}
        self.arrays: dict[str, dict[str, t.Any]] = {}
        self.raid_members: dict[str, dict[str, t.Any]] = {}
        #: Units that systemd takes for started, whatever has become of what they started.
        self.active: set[str] = set()
        self.calls: list[tuple[str, ...]] = []
        self.changes: list[str] = []
        #: The number of the changing command in which the process is killed, and whether before, inside or after its work.
        self.kill: tuple[int, str] | None = None
        self.writes = 0
        load_modules(root)
        for disk in _DISKS.values():
            self._node(disk.path).parent.mkdir(parents=True, exist_ok=True)
            self._node(disk.path).write_bytes(bytes(4096))
            self._link(disk.by_id[0], disk.path)
        (root / "sys/class/block").mkdir(parents=True)
        (root / "etc/systemd/system").mkdir(parents=True)
        (root / "etc/machine-id").write_text("0123456789abcdef0123456789abcdef\n")

    # -- as Runner

    def find(self, name: str) -> str:
        if name in self.missing:
            raise ToolMissing(f"The command {name} is missing.", item=name)
        return f"/usr/sbin/{name}"

    def has(self, name: str) -> bool:
        return name not in self.missing

    def run(self, argv: t.Sequence[str], *, ok: t.Container[int] | None = (0,), item: str | None = None, **how: t.Any) -> Completed:
        words = tuple(str(word) for word in argv)
        self.find(words[0])
        self.calls.append(words)
        changing = words[0] not in _READING_TOOLS and words[:2] not in READING
        if changing:
            self.changes.append(" ".join(words))
        moment = self.kill[1] if changing and self.kill is not None and self.kill[0] == len(self.changes) else ""
        if moment == "before":
            raise Killed
        rc, out, err = self._carry_out(words, inside=moment == "inside")
        if moment:
            raise Killed
        self.work()
        return Completed(words, rc, out, err).require(ok, item)

    def _carry_out(self, words: tuple[str, ...], *, inside: bool = False) -> tuple[int, str, str]:
        lie = next((rc for start, rc in self.lies.items() if " ".join(words).startswith(start)), None)
        if lie is not None:
            return lie, "", "Device or resource busy"
        if words[:2] == ("modprobe", "--dry-run"):
            return int(words[-1] not in self.installed), "", ""
        if words[:2] == ("dmsetup", "targets"):
            return 0, "linear           v1.4.0\nstriped          v1.6.0\n", ""
        if words[0] == "blkid" and not self.signatures.get(self._disk_at(words[-1])):
            return 2, "", ""
        if inside and words[:2] == ("mdadm", "--create"):
            words = (*words[:-1], words[-2])
            self._mdadm(list(words[1:]), start=False)
            return 0, "", ""
        try:
            if words[0] == "dmsetup":
                return 0, getattr(self, f"_dm_{words[1]}")(list(words[2:]), *([inside] if words[1] == "create" else [])) or "", ""
            return 0, getattr(self, f"_{words[0]}")(list(words[1:])) or "", ""
        except OSError as error:
            return 1, "", f"{error.filename}: {error.strerror}" if error.strerror else str(error)

    # -- the work that goes on over all this

    def work(self) -> None:
        """Write to what is mounted and read everything back, after every command."""
        for name in self.mounted:
            assert name in self.mapped, f"{name} is mounted and was taken away"
            self.writes += 1
            self.write(name, self.writes % 7, self.writes)
            self.check(name)

    def write(self, name: str, block: int, value: int) -> None:
        table = self.mapped[name].live
        assert table is not None
        assert not self.mapped[name].suspended, f"{name} stands still"
        self.expected[block] = value
        if table[0] == "linear":
            self.origin[block] = value
            return
        store = self._store_of(table)
        if table[0] == "writecache":
            if "cleaner" not in table or block in store:
                store[block] = (value, True)
            else:
                self.origin[block] = value
        elif "writeback" in table:
            store[block] = (value, True)
        else:
            self.origin[block] = value
            if "passthrough" in table:
                store.pop(block, None)
            elif "cleaner" not in table or block in store:
                store[block] = (value, False)

    def read(self, name: str, block: int) -> int | None:
        table = self.mapped[name].live
        assert table is not None
        if table[0] != "linear" and "passthrough" not in table:
            store = self._store_of(table)
            if block in store:
                return store[block][0]
        return self.origin.get(block)

    def check(self, name: str) -> None:
        """No wrong byte."""
        assert {block: self.read(name, block) for block in self.expected} == self.expected

    def check_origin(self) -> None:
        assert {block: self.origin.get(block) for block in self.expected} == self.expected

    def _store_of(self, table: list[str]) -> dict[int, tuple[int, bool]]:
        disk = self._disk_under(table)
        assert disk not in self.gone, "a request goes to a device that is gone"
        return self.stores.setdefault(disk, {})

    def _disk_under(self, table: list[str]) -> str:
        """The device under the data of a cache."""
        data = table[3] if table[0] == "writecache" else table[2]
        helper = next(mapped for mapped in self.mapped.values() if f"253:{mapped.number}" == data)
        assert helper.live is not None
        return self._name_of(helper.live[1])

    def _name_of(self, number: str) -> str:
        return next((disk.name for disk in _DISKS.values() if disk.number == number), "md127")

    # -- hands and power

    def pull(self, *names: str) -> None:
        """Take drives out; what is mapped to them stays mapped."""
        for name in names:
            self.gone.add(name)
            self._node(_DISKS[name].by_id[0]).unlink()
            self._node(f"/dev/{name}").rename(self._node(f"/dev/.pulled-{name}"))

    def put_back(self) -> None:
        """Put drives in again; systemd starts what their device units want."""
        names = sorted(self.gone)
        self.gone.clear()
        for name in names:
            self._node(f"/dev/.pulled-{name}").rename(self._node(f"/dev/{name}"))
            self._link(_DISKS[name].by_id[0], _DISKS[name].path)
        for name in names:
            for link in (self.root / boot_unit.FOLDER / f"{boot_unit.device_unit(_DISKS[name].by_id[0])}.wants").glob("*.service"):
                if link.name not in self.active:
                    self.start_unit(link.name)

    def cut_power(self) -> None:
        """Everything in memory is gone; dm-cache takes every block for dirty then."""
        self.mapped.clear()
        self.arrays.clear()
        self.kill = None
        for place in (self.root / "sys/class/block").iterdir():
            _remove_tree(place)
        for place in self._node("/dev/mapper").glob("*"):
            place.unlink()
        for place in self._node("/dev/disk/by-id").glob("md-*"):
            place.unlink()
        for disk, store in self.stores.items():
            self.stores[disk] = {block: (value, True) for block, (value, _dirty) in store.items()}
        self.unclean = set(self.stores)

    def boot(self) -> None:
        """What udev and systemd do: arrays are assembled, enabled units are started; then what fstab names is mounted."""
        self.active.clear()
        for uuid in {member["uuid"] for name, member in self.raid_members.items() if name not in self.gone}:
            self._assemble(uuid)
        for link in (self.root / "etc/systemd/system/sysinit.target.wants").glob("*.service"):
            self.start_unit(link.name)
        self.mounted = {name for name in self.mounted if name in self.mapped}

    def start_unit(self, name: str) -> bool:
        text = (self.root / "etc/systemd/system" / name).read_text()
        for line in text.splitlines():
            key, _equals, value = line.partition("=")
            if key == "ConditionPathExists" and self._node(value.lstrip("!")).is_symlink():
                # Not taken for started: the unit was skipped.
                return True
            if key in ("ExecStartPre", "ExecStart"):
                argv = shlex.split(value.lstrip("-"))
                argv[0] = argv[0].rsplit("/", 1)[-1]
                rc, _out, _err = self._carry_out(tuple(argv))
                if rc and not value.startswith("-"):
                    return False
        self.active.add(name)
        return True

    # -- reports

    def devices(self) -> Devices:
        return Devices(self._all(), self.root)

    def _all(self) -> list[BlockDevice]:
        devices = [self.other_disks.get(name, disk) for name, disk in _DISKS.items() if name not in self.gone]
        devices += [disk for name, disk in self.other_disks.items() if name not in _DISKS]
        for name, array in self.arrays.items():
            properties = {"MD_UUID": array["uuid"], "MD_NAME": array["label"]}
            by_id = (f"/dev/disk/by-id/md-uuid-{array['uuid']}",)
            devices.append(
                BlockDevice(
                    name=name, path=f"/dev/{name}", number="9:127", kind="md", size=1000 * MIB, slaves=array["members"], by_id=by_id, properties=properties
                )
            )
        for name, mapped in self.mapped.items():
            devices.append(
                BlockDevice(
                    name=f"dm-{mapped.number}",
                    path=f"/dev/dm-{mapped.number}",
                    number=f"253:{mapped.number}",
                    kind="dm",
                    dm_name=name,
                    dm_uuid=mapped.uuid,
                    dm_targets=tuple((mapped.live or [])[:1]),
                    slaves=self._slaves(mapped.live or []),
                )
            )
        return [device if device.name in self.other_disks else self._with_users(device) for device in devices]

    def _slaves(self, table: list[str]) -> tuple[str, ...]:
        known = self._names()
        return tuple(dict.fromkeys(known[word] for word in table if word in known))

    def _names(self) -> dict[str, str]:
        mappings = {f"253:{mapped.number}": f"dm-{mapped.number}" for mapped in self.mapped.values()}
        return {**{disk.number: disk.name for disk in _DISKS.values()}, **mappings}

    def _with_users(self, device: BlockDevice) -> BlockDevice:
        holders = [f"dm-{mapped.number}" for mapped in self.mapped.values() if device.number in (mapped.live or [])]
        holders += [name for name, array in self.arrays.items() if device.name in array["members"]]
        signature = None
        if device.name in self.raid_members:
            digits = self.raid_members[device.name]["uuid"].replace(":", "")
            signature = Signature("raid", "linux_raid_member", "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])))
        return dataclasses.replace(device, holders=tuple(holders), signature=signature)

    def _dm_info(self, words: list[str]) -> str:
        if "suspended" in words:
            return "Suspended\n" if self.mapped[words[-1]].suspended else "Active\n"
        lines = []
        for name, mapped in self.mapped.items():
            loaded = {(True, True): "Both", (True, False): "Live", (False, True): "Inactive", (False, False): "None"}[(bool(mapped.live), bool(mapped.waiting))]
            state = "Suspended" if mapped.suspended else "Active"
            lines.append(f"{name}|{mapped.uuid}|253|{mapped.number}|{self._opens(name)}|{state}|{loaded}")
        return "\n".join(lines) + "\n" if lines else "No devices found\n"

    def _opens(self, name: str) -> int:
        number = f"253:{self.mapped[name].number}"
        return sum(number in (table or []) for other in self.mapped.values() for table in (other.live, other.waiting)) + (name in self.mounted)

    def _dm_table(self, words: list[str]) -> str:
        if words:
            mapped = self.mapped[words[0]]
            return f"0 {self._length(mapped)} {' '.join(mapped.live or [])}\n"
        return "".join(f"{name}: 0 {self._length(mapped)} {' '.join(mapped.live)}\n" for name, mapped in self.mapped.items() if mapped.live)

    def _length(self, mapped: Mapped) -> int:
        return self.lengths[mapped.uuid]

    lengths: t.ClassVar[dict[str, int]] = {}

    def _dm_status(self, words: list[str]) -> str:
        text = ""
        for name, mapped in self.mapped.items():
            if mapped.live:
                text += f"{name}: 0 {self._length(mapped)} {self._status(mapped.live)}\n"
        return text

    def _status(self, table: list[str]) -> str:
        if table[0] == "linear":
            return "linear "
        disk = self._disk_under(table)
        if disk in self.gone | self.failed:
            return f"{table[0]} Fail"
        store = self._store_of(table)
        if "cleaner" in table and not self.stuck:
            self._clean(table, store)
        dirty = sum(dirty for _value, dirty in store.values())
        if table[0] == "writecache":
            return f"writecache 0 1000 {1000 - len(store)} 0"
        mode = next(word for word in ("writethrough", "writeback", "passthrough") if word in table)
        policy = "cleaner" if "cleaner" in table else "smq"
        check = "needs_check" if self.needs_check else "-"
        return f"cache 8 23/2048 {table[4]} {len(store)}/8192 54 62 0 0 0 21 {dirty} 2 metadata2 {mode} 2 migration_threshold 2048 {policy} 0 rw {check} "

    def _clean(self, table: list[str], store: dict[int, tuple[int, bool]]) -> None:
        """Two more blocks get to the origin."""
        for block in [block for block, (_value, dirty) in store.items() if dirty][:2]:
            self.origin[block] = store[block][0]
            store[block] = (store[block][0], False)
            if table[0] == "writecache":
                del store[block]

    def _wipefs(self, words: list[str]) -> str:
        name = self._disk_at(words[-1])
        found = self.signatures.get(name) or ("linux_raid_member" if name in self.raid_members else "")
        return json.dumps({"signatures": [{"device": name, "offset": "0x438", "type": found}]}) if found else ""

    def _blkid(self, words: list[str]) -> str:
        name = self._disk_at(words[-1])
        return f"DEVNAME={words[-1]}\nTYPE={self.signatures[name]}\nBLOCK_SIZE={self.content_block}\n"

    def _pvs(self, words: list[str]) -> str:
        if self.lvm_rejects:
            raise OSError(f'  Failed to find device "{words[-1]}".')
        return f"  {words[-1]}\n"

    def _lvmconfig(self, words: list[str]) -> str:
        return 'global_filter=["a|^/dev/mapper/|","r|.*|"]\nfilter=["a|.*|"]\nuse_devicesfile=0\n'

    def _sync(self, words: list[str]) -> None:
        assert not self.mapped[words[0].rsplit("/", 1)[-1]].suspended, "nothing comes back from a device that is suspended"

    def _udevadm(self, words: list[str]) -> None:
        pass

    # -- device-mapper

    def _words_of(self, text: str, uuid: str) -> list[str]:
        """A table with numbers in the place of paths, as the kernel keeps it."""
        words = text.split()
        self.lengths[uuid] = int(words[1])
        return [self._number_at(word) if word.startswith("/") else word for word in words[2:]]

    def _number_at(self, path: str) -> str:
        if path.startswith("/dev/mapper/"):
            return f"253:{self.mapped[path[len('/dev/mapper/') :]].number}"
        if self._disk_at(path) in self.gone:
            raise OSError("No such device")
        return self._named(self._disk_at(path)).number

    def _named(self, name: str) -> BlockDevice:
        return next(device for device in self._all() if device.name == name)

    def _disk_at(self, path: str) -> str:
        node = self._node(path)
        if not node.exists():
            raise OSError(f"{path}: No such file or directory")
        return node.resolve().name

    def _dm_create(self, words: list[str], inside: bool = False) -> None:
        name, uuid, text = words[0], words[2], words[4]
        assert words[1] == "--uuid" and words[3] == "--table"
        if name in self.mapped:
            raise OSError("Device or resource busy")
        self.mapped[name] = Mapped(self.numbers, uuid)
        self.numbers += 1
        (self.root / f"sys/class/block/dm-{self.mapped[name].number}").mkdir()
        if inside:
            return
        try:
            table = self._words_of(text, uuid)
            self._construct(table)
        except (OSError, KeyError) as error:
            self._drop(name)
            raise OSError(f"reload ioctl failed: {error}") from None
        self.mapped[name].live = table
        try:
            self._preresume(self.mapped[name])
        except OSError:
            # dmsetup takes away what it made and cannot resume (libdm-iface.c, _create_and_load_v4): it is not waited for.
            self.stood_still -= 1
            self._drop(name)
            raise
        node = self._node(f"/dev/mapper/{name}")
        node.parent.mkdir(exist_ok=True)
        if table[0] == "linear" and table[2] == "0" and uuid.split("-")[1] != "TOP":
            node.symlink_to(self._node(f"/dev/{self._name_of(table[1])}"))
        else:
            self._node(f"/dev/dm-{self.mapped[name].number}").write_bytes(bytes(4096))
            node.symlink_to(f"../dm-{self.mapped[name].number}")

    def _construct(self, table: list[str]) -> None:
        """What the kernel looks at when a table is loaded: a cache device is new when its head is zero."""
        if table[0] == "linear":
            return
        disk = self._disk_under(table)
        if disk in self.gone:
            raise OSError("Error opening metadata device")
        node = self._node(f"/dev/{disk}")
        head = node.read_bytes()
        offset, magic = _MAGIC[table[0]]
        if head[:4096] == bytes(4096):
            node.write_bytes(bytes(offset) + magic + bytes(4096 - offset - len(magic)))
            self.stores[disk] = {}
            self.unclean.discard(disk)
        elif head[offset : offset + len(magic)] != magic:
            raise OSError("Invalid superblock")

    def _dm_reload(self, words: list[str]) -> None:
        assert words[1] == "--table"
        mapped = self.mapped[words[0]]
        table = self._words_of(words[2], mapped.uuid)
        self._construct(table)
        mapped.waiting = table

    def _dm_resume(self, words: list[str]) -> None:
        mapped = self.mapped[words[-1]]
        if mapped.waiting:
            old, new = mapped.live, mapped.waiting
            if old and old[0] != "linear" and new[0] == "linear" and not self.gone & {self._disk_under(old)}:
                dirty = [block for block, (_value, dirty) in self._store_of(old).items() if dirty]
                assert not dirty, "the cache is taken away with dirty blocks"
                self._closed(old)
            mapped.live, mapped.waiting = new, None
        self._preresume(mapped)
        mapped.suspended = False

    def _preresume(self, mapped: Mapped) -> None:
        """Metadata that were not closed cleanly make every block dirty at every load; with one dirty block nothing goes on in passthrough."""
        if not mapped.live or mapped.live[0] != "cache":
            return
        disk = self._disk_under(mapped.live)
        store = self.stores.get(disk, {})
        if disk in self.unclean:
            self.stores[disk] = store = {block: (value, True) for block, (value, _dirty) in store.items()}
        if "passthrough" in mapped.live and any(dirty for _value, dirty in store.values()):
            mapped.suspended = True
            self.stood_still += 1
            raise OSError("resume ioctl failed: Invalid argument")

    def _dm_clear(self, words: list[str]) -> None:
        self.mapped[words[0]].waiting = None

    def _dm_remove(self, words: list[str]) -> None:
        name = words[-1]
        if name not in self.mapped:
            raise OSError("No such device or address")
        if self._opens(name):
            raise OSError("Device or resource busy")
        self._closed(self.mapped[name].live)
        self._drop(name)

    def _closed(self, table: list[str] | None) -> None:
        """Metadata are closed with their last table, and cleanly."""
        if table and table[0] == "cache":
            self.unclean.discard(self._disk_under(table))

    def stop_unit(self) -> None:
        """What is mounted goes, and with it everything under it."""
        self.active.clear()
        self.take_down()

    def take_down(self) -> None:
        """The same with dmsetup, of which systemd learns nothing."""
        self.mounted.clear()
        for name in sorted(self.mapped, key=lambda name: name.startswith("cachefleet-")):
            self._dm_remove([name])

    def _drop(self, name: str) -> None:
        mapped = self.mapped.pop(name)
        (self.root / f"sys/class/block/dm-{mapped.number}").rmdir()
        node = self._node(f"/dev/mapper/{name}")
        if node.is_symlink():
            node.unlink()

    def _cache_check(self, words: list[str]) -> None:
        head = self._node(words[0]).read_bytes()
        offset, magic = _MAGIC["cache"]
        if head[offset : offset + len(magic)] != magic:
            raise OSError("bad superblock")

    # -- systemd

    def _systemctl(self, words: list[str]) -> None:
        folder = self.root / "etc/systemd/system"
        if words[0] == "enable":
            enable_unit(folder, words[1])
        elif words[0] == "disable":
            disable_unit(folder, words[1])
        elif words[0] == "restart":
            self.active.discard(words[1])
        # To start what is taken for started does nothing.
        if words[0] in ("start", "restart") and words[1] not in self.active and not self.start_unit(words[1]):
            raise OSError("Job failed")

    # -- MD

    def _mdadm(self, words: list[str], *, start: bool = True) -> None:
        option = dict(word.split("=", 1) for word in words if word.startswith("--") and "=" in word)
        if words[0] == "--create":
            for path in words[-2:]:
                self.raid_members[self._disk_at(path)] = {"uuid": option["--uuid"], "label": option["--name"]}
            if start:
                self._assemble(option["--uuid"])
        elif words[0] == "--assemble":
            self._assemble(option["--uuid"])
        elif words[0] == "--stop":
            name = words[1].rsplit("/", 1)[-1]
            if any("9:127" in (mapped.live or []) for mapped in self.mapped.values()):
                raise OSError("Cannot get exclusive access")
            array = self.arrays.pop(name)
            self._node(f"/dev/disk/by-id/md-uuid-{array['uuid']}").unlink()
            _remove_tree(self.root / "sys/class/block" / name)
        elif words[0] == "--zero-superblock":
            self.raid_members.pop(self._disk_at(words[1]), None)

    def _assemble(self, uuid: str) -> None:
        if any(array["uuid"] == uuid for array in self.arrays.values()):
            return
        members = {name: member for name, member in self.raid_members.items() if member["uuid"] == uuid and name not in self.gone}
        folder = self.root / "sys/class/block/md127/md"
        folder.mkdir(parents=True)
        for file, text in {"level": "raid1", "raid_disks": "2", "degraded": str(2 - len(members))}.items():
            (folder / file).write_text(f"{text}\n")
        self.arrays["md127"] = {"uuid": uuid, "label": f"any:{next(iter(members.values()))['label']}", "members": tuple(sorted(members))}
        node = self._node("/dev/md127")
        if not node.exists():
            node.write_bytes(bytes(4096))
        self._link(f"/dev/disk/by-id/md-uuid-{uuid}", "/dev/md127")

    def _node(self, path: str) -> Path:
        return self.root / path.lstrip("/")

    def _link(self, path: str, target: str) -> None:
        node = self._node(path)
        node.parent.mkdir(parents=True, exist_ok=True)
        if not node.is_symlink():
            node.symlink_to(self._node(target))


def _remove_tree(place: Path) -> None:
    for child in place.iterdir():
        if child.is_dir():
            _remove_tree(child)
        else:
            child.unlink()
    place.rmdir()
