# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cells of the laboratory: a stack, how it is written, what must be found after a power cut, and why. Nothing here was measured.

``make`` builds a stack once, ``up`` assembles it after each boot; both are lines of a shell with the functions of ``PRELUDE``.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

KEPT, LOST, TORN = "kept", "lost", "torn"

#: ``d NAME`` is the path of the disk with this name in host_vars/node1.yml, ``k PATH`` the name of the kernel for it.
PRELUDE = r"""
set -euo pipefail
mkdir -p /run/lab
udevadm settle
d() { ls /dev/disk/by-id/ata-VIRTUAL_*_"${1^^}"; }
k() { basename "$(readlink -f "$1")"; }
sectors() { blockdev --getsz "$1"; }
wait_for() { for _turn in $(seq 300); do if [ -e "$1" ]; then return; fi; sleep 0.2; done; echo "$1 has not appeared" >&2; exit 1; }
has() { if ! grep -qF -- "$2" "$1"; then echo "$1 does not have: $2" >&2; exit 1; fi; }
"""

FSYNC = {"sync": "fsync"}
NONE = {"sync": "none"}


@dataclass(frozen=True)
class Cell:
    """One cell.

    :param disks: what is below, in words.
    :param target: ``device`` or ``file`` on the machine.
    :param load: options of ``power_loss_writer`` that differ from its defaults.
    :param answer: ``kept``, ``lost``, or ``torn``: lost, and every damaged block is torn.
    :param why: the construction from which the answer follows.
    """

    name: str
    disks: str
    target: t.Mapping[str, str]
    load: t.Mapping[str, t.Any]
    answer: str
    why: str
    make: str = ""
    up: str = ""


def raw(name: str, disk: str, disks: str, load: t.Mapping[str, t.Any], answer: str, why: str, *, make: str = "", up: str = "") -> Cell:
    return Cell(name, disks, {"device": f"/run/lab/{name}"}, load, answer, why, make, f'{up}\nln -sfn "{disk}" /run/lab/{name}')


def disk(name: str) -> str:
    return f"$(d {name})"


RAW = (
    raw("raw-fsync", disk("raw-fsync"), "honest", FSYNC, KEPT, "each write is flushed, and the disk honours flushes"),
    raw("raw-none", disk("raw-none"), "honest", NONE, LOST, "nothing flushes the cache of the disk"),
    raw("raw-fua", disk("raw-fua"), "honest", {"sync": "fua", "depth": 8}, KEPT, "each write is forced to the media or flushed"),
    raw(
        "raw-told", disk("raw-told"), "honest, kernel told that it writes through", FSYNC, LOST, "the kernel sends no flush, and the cache of the disk is on",
        up="""for f in /sys/block/"$(k "$(d raw-told)")"/device/scsi_disk/*/cache_type; do echo "temporary write through" > "$f"; done
              has /sys/block/"$(k "$(d raw-told)")"/queue/write_cache "write through" """,
    ),
    raw(
        "raw-w0", disk("raw-w0"), "honest, cache turned off", NONE, KEPT, "the disk has no cache after hdparm -W 0",
        up='hdparm -W 0 "$(d raw-w0)" | grep -q "write-caching =  0 (off)"',
    ),
    raw(
        "raw-off", "$(d nocache)-part1", "cache off", NONE, KEPT, "the disk has no cache",
        make='printf "size=64M\\nsize=64M\\n" | sfdisk -q --label gpt "$(d nocache)"',
    ),
    raw("raw-protected", disk("protected"), "protected cache", NONE, KEPT, "the cache of the disk survives a power cut"),
    raw("raw-torn-none", disk("torn-none"), "torn", NONE, TORN, "of each block that was not flushed only some sectors are on the media"),
    raw(
        "raw-torn-fsync", disk("torn-fsync"), "torn", {"sync": "fsync", "order": "sequential"}, KEPT,
        "each write is flushed, and no write in flight is in the place of an acknowledged one",
    ),
    raw(
        "raw-lies", "$(d lies-a)-part1", "lies", FSYNC, LOST, "the disk ignores flushes",
        make='printf "size=64M\\nsize=48M\\nsize=48M\\nsize=400M\\n" | sfdisk -q --label gpt "$(d lies-a)"\n'
        'printf "size=160M\\nsize=160M\\n" | sfdisk -q --label gpt "$(d lies-b)"\nudevadm settle',
    ),
)  # fmt: skip


def lvm(name: str, mode: str, fast: str, disks: str, load: t.Mapping[str, t.Any], answer: str, why: str, meta: str = "") -> Cell:
    group = name.replace("-", "")
    lines = [
        f'vgcreate -q {group} "$(d {name}-hdd)" "{fast}" {meta} >/dev/null',
        f'lvcreate -q -y -n data -L 128M {group} "$(d {name}-hdd)" >/dev/null',
        f'lvcreate -q -y -n fast -L 128M {group} "{fast}" >/dev/null',
    ]
    cache = "--cachevol fast"
    if meta:
        lines += [
            f"lvcreate -q -y -n meta -L 12M {group} {meta} >/dev/null",
            f"lvconvert -q -y --type cache-pool --poolmetadataspare n --poolmetadata {group}/meta {group}/fast >/dev/null",
        ]
        cache = "--cachepool fast"
    lines.append(f"lvconvert -q -y --type cache {cache} --cachemode {mode} {group}/data >/dev/null")
    up = f"vgchange -q -ay {group} >/dev/null\nwait_for /dev/{group}/data\nlvs --noheadings -o cache_mode {group}/data | grep -q {mode}"
    return Cell(name, disks, {"device": f"/dev/{group}/data"}, load, answer, why, "\n".join(lines), up)


LVM = (
    lvm("lvm-wb", "writeback", disk("lvm-wb-ssd"), "honest + honest", FSYNC, KEPT, "dm-cache passes flushes on to both"),
    lvm("lvm-none", "writeback", disk("lvm-none-ssd"), "honest + honest", NONE, LOST,
        "nothing flushes the disks with data: the metadata of the cache, which are committed, are on a third", '"$(d lvm-none-meta)"'),
    lvm("lvm-wt", "writethrough", disk("lvm-wt-ssd"), "honest + honest", {"sync": "fdatasync", "depth": 4}, KEPT, "dm-cache passes flushes on to both"),
    lvm("lvm-lies", "writeback", "$(d lies-b)-part1", "honest + lies", FSYNC, LOST, "acknowledged blocks are dirty in the cache, whose disk ignores flushes"),
)  # fmt: skip


def table(name: str, lines: str, disks: str, load: t.Mapping[str, t.Any], answer: str, why: str) -> Cell:
    size = f'$(sectors "$(d {name}-hdd)")'
    up = f'if ! dmsetup info {name} >/dev/null 2>&1; then dmsetup create {name} --table "0 {size} {lines}"; fi'
    return Cell(name, disks, {"device": f"/dev/mapper/{name}"}, load, answer, why, "", up)


def devices(name: str, *parts: str) -> str:
    return " ".join(f"$(d {name}-{part})" for part in parts)


_UNCOMMITTED = "4 autocommit_blocks 1000000 autocommit_time 3600000"
MAPPER = (
    table("dmc-wb", f"cache {devices('dmc-wb', 'meta', 'ssd', 'hdd')} 128 1 writeback smq 0", "honest + honest", {"sync": "o_dsync", "depth": 2}, KEPT,
          "dm-cache passes flushes on to both"),
    table("dmc-none", f"cache {devices('dmc-none', 'meta', 'ssd', 'hdd')} 128 1 writeback smq 0", "honest + honest", NONE, LOST,
          "nothing flushes the disks with data: the metadata of the cache, which are committed, are on a third"),
    table("wc-fsync", f"writecache s {devices('wc-fsync', 'hdd', 'ssd')} 4096 0", "honest + honest", {"sync": "fdatasync", "depth": 2}, KEPT,
          "dm-writecache commits to its SSD, and flushes that"),
    table("wc-none", f"writecache s {devices('wc-none', 'hdd', 'ssd')} 4096 {_UNCOMMITTED}", "honest + honest", NONE, LOST,
          "dm-writecache commits nothing before a flush, since its autocommit is set to an hour"),
)  # fmt: skip


def bcache(name: str, mode: str, fast: str, disks: str, load: t.Mapping[str, t.Any], answer: str, why: str) -> Cell:
    make = "\n".join(
        [
            "modprobe bcache",
            # The kernel wants 1,024 buckets at least.
            f'make-bcache --bucket 128k -B "$(d {name}-hdd)" -C "{fast}" >/dev/null',
            # Also registered by udev: whichever comes second fails.
            f'for f in "$(d {name}-hdd)" "{fast}"; do readlink -f "$f" > /sys/fs/bcache/register 2>/dev/null || true; done',
            f'wait_for /sys/block/"$(k "$(d {name}-hdd)")"/bcache/dev/bcache/cache_mode',
            f'wait_for /sys/block/"$(k "$(d {name}-hdd)")"/bcache/cache',
            f'echo {mode} > /sys/block/"$(k "$(d {name}-hdd)")"/bcache/cache_mode',
        ]
    )
    up = "\n".join(
        [
            f'b=/sys/block/"$(k "$(d {name}-hdd)")"/bcache',
            # Attached: without its cache set the device works too.
            'wait_for "$b/cache"',
            f'has "$b/cache_mode" "[{mode}]"',
            'echo 0 > "$b/sequential_cutoff"',
            f'ln -sfn "/dev/$(k "$b/dev")" /run/lab/{name}',
        ]
    )
    return Cell(name, disks, {"device": f"/run/lab/{name}"}, load, answer, why, make, up)


BCACHE = (
    bcache("bc-wb", "writeback", disk("bc-wb-ssd"), "honest + honest", FSYNC, KEPT, "bcache flushes its journal, and with it the SSD"),
    bcache("bc-wt", "writethrough", disk("bc-wt-ssd"), "honest + honest", {"sync": "fua", "depth": 4}, KEPT, "bcache passes flushes on to the disk"),
    bcache("bc-around", "writearound", disk("bc-around-ssd"), "honest + honest", NONE, LOST, "writes go to the disk only, which nothing flushes"),
    bcache("bc-lies", "writeback", "$(d lies-b)-part2", "honest + lies", FSYNC, LOST, "acknowledged blocks are dirty in the cache, whose disk ignores flushes"),
)


def mirror(name: str, first: str, second: str, disks: str, load: t.Mapping[str, t.Any], answer: str, why: str) -> Cell:
    make = f'mdadm --quiet --create /dev/md/{name} --run --level=1 --raid-devices=2 --size=32768 --bitmap=none --assume-clean "{first}" "{second}"'
    up = "\n".join(
        [
            f'm=$(ls /sys/class/block/"$(k "{first}")"/holders)',
            f'if [ -z "$m" ]; then mdadm --quiet --assemble --run /dev/md/{name} "{first}" "{second}"; m=$(ls /sys/class/block/"$(k "{first}")"/holders); fi',
            'mdadm --quiet --readwrite "/dev/$m" || true',
            # A resynchronization writes superblocks, with a flush.
            'mdadm --quiet --wait "/dev/$m" || true',
            # Otherwise each pause of a writer has the array marked as clean, with a flush.
            'echo 0 > "/sys/block/$m/md/safe_mode_delay"',
            f'ln -sfn "/dev/$m" /run/lab/{name}',
        ]
    )
    return Cell(name, disks, {"device": f"/run/lab/{name}"}, load, answer, why, make, up)


MIRRORS = (
    mirror("md-fsync", disk("md-fsync-a"), disk("md-fsync-b"), "honest, honest", FSYNC, KEPT, "the mirror passes flushes on to both disks"),
    mirror("md-none", disk("md-none-a"), disk("md-none-b"), "honest, honest", NONE, LOST, "nothing flushes the disks"),
    mirror("md-lies", "$(d lies-a)-part2", "$(d lies-a)-part3", "lies, lies", FSYNC, LOST, "both disks ignore flushes"),
)


def files(name: str, path: str, kind: str, disks: str, load: t.Mapping[str, t.Any], answer: str, why: str, options: str = "defaults") -> Cell:
    extra = "-E lazy_itable_init=0,lazy_journal_init=0" if kind == "ext4" else ""
    make = f'mkfs.{kind} -q {extra} "{path}"'
    up = f'mkdir -p /mnt/{name}\nif ! mountpoint -q /mnt/{name}; then mount -t {kind} -o {options} "{path}" /mnt/{name}; fi'
    return Cell(name, disks, {"file": f"/mnt/{name}/written"}, load, answer, why, make, up)


_HONEST = "the file system flushes what fsync waits for"
FILES = (
    files("ext4-inplace", disk("ext4-inplace"), "ext4", "honest", {"sync": "fsync", "direct": False}, KEPT, _HONEST),
    files("ext4-append", disk("ext4-append"), "ext4", "honest", {"sync": "fdatasync", "layout": "append"}, KEPT, _HONEST),
    files("ext4-rename", disk("ext4-rename"), "ext4", "honest", {"sync": "fsync", "layout": "rename"}, KEPT, _HONEST),
    files("ext4-none", disk("ext4-none"), "ext4", "honest", {"sync": "none", "layout": "rename"}, LOST,
          "names are in the journal, which is committed every 300 s", "commit=300"),
    files("ext4-nobar", disk("ext4-nobar"), "ext4", "honest", FSYNC, LOST, "with barrier=0 the file system sends no flush", "barrier=0"),
    files("xfs-inplace", disk("xfs-inplace"), "xfs", "honest", {"sync": "fdatasync"}, KEPT, _HONEST),
    files("xfs-append", disk("xfs-append"), "xfs", "honest", {"sync": "fsync", "layout": "append"}, KEPT, _HONEST),
    files("xfs-rename", disk("xfs-rename"), "xfs", "honest", {"sync": "fdatasync", "layout": "rename"}, KEPT, _HONEST),
    files("xfs-lies", "$(d lies-a)-part4", "xfs", "lies", {"sync": "fsync", "layout": "rename"}, LOST, "the disk ignores flushes"),
)  # fmt: skip


def aoe(number: int, name: str, exported: str, options: str, disks: str, answer: str, why: str) -> Cell:
    device = f"/dev/etherd/e1.{number}"
    up = "\n".join(
        [
            "modprobe aoe",
            "if [ ! -e /sys/class/net/lab0 ]; then ip link add lab0 mtu 9000 type veth peer name lab1 mtu 9000; ip link set lab0 up; ip link set lab1 up; fi",
            f"if [ ! -e /run/lab/{name}.exported ]; then",
            f'  setsid vblade {options} 1 {number} lab1 "$(readlink -f "{exported}")" >/dev/null 2>&1 </dev/null &',
            f"  touch /run/lab/{name}.exported; sleep 1",
            "fi",
            f"for _turn in $(seq 60); do if [ -e {device} ]; then break; fi; aoe-discover; sleep 0.5; done",
            f"wait_for {device}",
        ]
    )
    return Cell(name, disks, {"device": device}, FSYNC, answer, why, "", up)


AOE = (
    aoe(1, "aoe-buffered", disk("aoe-buffered"), "", "honest, vblade", LOST, "no flush comes through, and the target writes to its page cache"),
    aoe(2, "aoe-direct", disk("aoe-direct"), "-d", "honest, vblade -d", LOST, "no flush comes through to the disk, whose cache is on"),
    aoe(3, "aoe-sync", disk("aoe-sync"), "-s", "honest, vblade -s", KEPT, "the target syncs each write before it answers"),
    aoe(4, "aoe-off", "$(d nocache)-part2", "-d", "cache off, vblade -d", KEPT, "each write is on the media before the target answers"),
)

CELLS: tuple[Cell, ...] = (*RAW, *LVM, *MAPPER, *BCACHE, *MIRRORS, *FILES, *AOE)


def script(part: str) -> str:
    """The shell that builds (``make``) or assembles (``up``) all stacks."""
    return "\n".join([PRELUDE, *(f"echo {cell.name}\n{getattr(cell, part)}" for cell in CELLS), "udevadm settle", ""])
