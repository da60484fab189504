# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The links by which systemd enables a unit."""

from __future__ import annotations

from pathlib import Path


def enable_unit(folder: Path, name: str) -> None:
    """What ``systemctl enable`` does with the files."""
    lines = [line for line in (folder / name).read_text().splitlines() if line.startswith("WantedBy=")]
    for unit in lines[0].split("=")[1].split() if lines else ["sysinit.target"]:
        link = folder / f"{unit}.wants" / name
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.is_symlink():
            link.symlink_to(folder / name)


def disable_unit(folder: Path, name: str) -> None:
    """What ``systemctl disable`` does with the files."""
    for link in folder.glob(f"*.wants/{name}"):
        link.unlink()
