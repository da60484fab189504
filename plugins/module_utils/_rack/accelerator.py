# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which accelerator really runs a guest. ``/dev/kvm`` can exist, open, and still not run one: only a booted guest proves it."""

from __future__ import annotations

import hashlib
import os
import pathlib

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import Refused, TimedOut
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.places import make_folder, read_json, write_json
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.qemu import accelerator_arguments

#: A guest that has KVM is through in two seconds.
PROBE_SECONDS = 10.0

#: What a guest kernel prints on the serial console after its first program ran and requested a restart.
PROBE_MARKER = "reboot: Restarting system"


def probe_arguments(kernel: str, initrd: str, accelerator: str) -> list[str]:
    """A guest that boots, runs one program of its initramfs, restarts and so ends QEMU."""
    return [
        "qemu-system-x86_64",
        "-machine", "q35,sata=off,smbus=off,vmport=off",
        "-nodefaults",
        "-no-user-config",
        *accelerator_arguments(accelerator),
        "-m", "256M",
        "-display", "none",
        "-no-reboot",
        "-serial", "stdio",
        "-kernel", kernel,
        "-initrd", initrd,
        "-append", "console=ttyS0 rdinit=/bin/reboot reboot=t",
    ]  # fmt: skip


def guest_boots(runner: Runner, kernel: str, initrd: str, accelerator: str) -> bool:
    """Boot a guest and see whether it ran. The guest is ended with the time limit, whatever it does."""
    try:
        completed = runner.run(probe_arguments(kernel, initrd, accelerator), ok=None, timeout=PROBE_SECONDS)
    except TimedOut as error:
        return error.completed is not None and PROBE_MARKER in error.completed.stdout
    return PROBE_MARKER in completed.stdout


def choose_accelerator(
    runner: Runner,
    requested: str,
    *,
    kernel: str,
    initrd: str,
    cache_dir: pathlib.Path,
    device: str = "/dev/kvm",
) -> str:
    """``kvm`` or ``tcg``.

    The answer of a probe is kept in the cache folder for this host kernel, this QEMU and this processor model.

    :param requested: ``auto``, ``kvm`` or ``tcg``.
    :raises Refused: if ``kvm`` is wanted and no guest boots with it.
    """
    if requested == "tcg":
        return "tcg"
    if not os.access(device, os.R_OK | os.W_OK):
        if requested == "kvm":
            raise Refused(f"accelerator is kvm, and {device} does not exist or may not be opened by this user: use auto or tcg, or join the group kvm.")
        return "tcg"
    works = _remembered_probe(runner, kernel, initrd, cache_dir)
    if requested == "kvm" and not works:
        raise Refused(f"accelerator is kvm, and no guest booted with it within {PROBE_SECONDS:g} seconds although {device} exists: use auto or tcg.")
    return "kvm" if works else "tcg"


def _remembered_probe(runner: Runner, kernel: str, initrd: str, cache_dir: pathlib.Path) -> bool:
    version = runner.run(["qemu-system-x86_64", "--version"]).stdout.splitlines()[0]
    key = hashlib.sha256("\n".join((*os.uname(), version)).encode()).hexdigest()[:16]
    path = cache_dir / "accelerators.json"
    known = read_json(path) or {}
    if key not in known:
        known[key] = {"kvm": guest_boots(runner, kernel, initrd, "kvm"), "host": " ".join(os.uname()), "qemu": version}
        make_folder(cache_dir)
        write_json(path, known)
    return bool(known[key]["kvm"])
