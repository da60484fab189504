# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Thin volumes and snapshots: what a job may write must fit into the pool, or into what a snapshot has left."""

from __future__ import annotations

import contextlib

from proofs.building import logical_volume, mounted_on, run, volume_group
from proofs.proof import Proof

_MIB = 1024**2


def written(volume: str, megabytes: int) -> None:
    run("dd", "if=/dev/zero", f"of={volume}", "bs=1M", f"count={megabytes}", "conv=fsync", "status=none")


def thin_pool(undo: contextlib.ExitStack, proof: Proof, group: str, size: str) -> None:
    volume_group(undo, group, proof.loop(undo, 256))
    run("lvcreate", "--yes", "--quiet", "--type", "thin-pool", "--name", "pool", "--size", size, "--poolmetadatasize", "4m", group)


def thin_volume(group: str, name: str, size: str) -> str:
    run("lvcreate", "--yes", "--quiet", "--thin", "--virtualsize", size, "--name", name, f"{group}/pool")
    return f"/dev/{group}/{name}"


def thin_volumes(proof: Proof, undo: contextlib.ExitStack) -> None:
    thin_pool(undo, proof, "guardthin", "64m")
    neighbour, target = thin_volume("guardthin", "neighbour", "64m"), thin_volume("guardthin", "target", "48m")
    proof.expect("thin volume that fits into its pool", target)
    written(neighbour, 40)
    proof.expect("thin volume whose pool is nearly full", target, "room")
    proof.expect("the same, permitted", target, "room", allow_data_loss=True, identity="guardthin/target")
    proof.expect("part of it that fits", target, size=8 * _MIB)
    proof.expect("the same volume, reading", target, writing=False)
    run("mkfs.ext4", "-q", "-E", "nodiscard,lazy_itable_init=1", target)
    point = mounted_on(proof.folder, undo, target)
    proof.expect("file that does not fit into the pool below its file system", str(point / "new"), "room", kind="file", size=30 * _MIB)
    proof.expect("file that fits into it", str(point / "new"), kind="file", size=2 * _MIB)


def snapshot_of_a_thin_volume(proof: Proof, undo: contextlib.ExitStack) -> None:
    thin_pool(undo, proof, "guardshare", "48m")
    target = thin_volume("guardshare", "target", "32m")
    written(target, 32)
    proof.expect("thin volume that is written over in its place", target)
    run("lvcreate", "--yes", "--quiet", "--snapshot", "--name", "kept", "guardshare/target")
    proof.expect("thin volume that shares all its blocks with a snapshot", target, "room")


def classic_snapshots(proof: Proof, undo: contextlib.ExitStack) -> None:
    volume_group(undo, "guardsnap", proof.loop(undo, 256))
    origin = logical_volume("guardsnap", "origin", "32m")
    run("lvcreate", "--yes", "--quiet", "--snapshot", "--size", "8m", "--name", "small", "guardsnap/origin")
    proof.expect("origin of a snapshot that is too small", origin, "room")
    proof.expect("snapshot that is smaller than its origin", "/dev/guardsnap/small", "room")
    proof.expect("part of the origin that fits", origin, size=4 * _MIB)
    run("lvremove", "--yes", "--quiet", "guardsnap/small")
    run("lvcreate", "--yes", "--quiet", "--snapshot", "--size", "40m", "--name", "large", "guardsnap/origin")
    proof.expect("origin of a snapshot with enough room", origin)
    proof.expect("snapshot with enough room", "/dev/guardsnap/large")


CASES = (thin_volumes, snapshot_of_a_thin_volume, classic_snapshots)
