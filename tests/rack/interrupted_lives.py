#!/usr/bin/env python
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lives of SSD caches with real tools, real devices and data, in which the modules are killed at every step.

``interrupted_lives.py --pack FILE`` writes one self-contained file on a controller. ``python3 FILE --origin DISK --cache DISK
--cache DISK`` runs it as root on a machine whose disks may be overwritten: they are named by serial number or WWN (a path below
/dev/disk/by-id) and must be empty. A mirrored cache changes its devices only if there are three of them (LVM, which keeps a half) or four.

Each life goes from an empty disk over write-through, write-back, settings, another cache device, flushed and used again to removed
with its devices released. The module runs in a process that kills itself: right after a change, right before it, in the middle of
a command together with it or leaving it behind. An application writes all the time, wherever a device may stay in use. Then the
module runs to the end, and once more without changing anything, and every block is compared: through the cache, and where the cache
must be clean on the slow device alone. Every line is one proven case; the exit status is 1 if one was not.
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import time
import zipfile
from pathlib import Path

_COLLECTION = "ansible_collections/cachefleet/storage/plugins"


def pack(destination: str, program: str = __file__) -> None:
    """Write a zip application that needs nothing but python3 and the tools of the target.

    :param program: what it runs; a benchmark on the same caches is another one.
    """
    import ansible.module_utils

    here = Path(__file__).resolve()
    plugins = here.parents[2] / "plugins"
    sources = (
        (Path(ansible.module_utils.__path__[0]), "ansible/module_utils", "**/*.py"),
        (plugins / "module_utils", f"{_COLLECTION}/module_utils", "**/*.py"),
        (plugins / "modules", f"{_COLLECTION}/modules", "*cache.py"),
        (here.parent / "lives", "lives", "*.py"),
    )
    with zipfile.ZipFile(destination, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(program, "__main__.py")
        for folder, name, pattern in sources:
            for file in folder.glob(pattern):
                archive.write(file, f"{name}/{file.relative_to(folder)}")
        # A zip file has no folders, and so no namespace packages, unless each says that it is a package.
        packages = {str(parent) for name in archive.namelist() for parent in Path(name).parents if str(parent) != "."}
        for package in sorted(packages - {str(Path(name).parent) for name in archive.namelist() if name.endswith("/__init__.py")}):
            archive.writestr(f"{package}/__init__.py", "")


def arguments_of(argv: list[str] | None = None) -> argparse.Namespace:
    from lives.caches import LIVES

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pack", metavar="FILE")
    parser.add_argument("--origin", metavar="DISK", help="the slow disk; it is overwritten")
    parser.add_argument("--cache", metavar="DISK", action="append", default=[], help="a fast disk; it is overwritten; two or more")
    parser.add_argument("--life", action="append", choices=list(LIVES), default=[], help="which; default: all")
    parser.add_argument("--budget", type=float, default=float("inf"), metavar="SECONDS", help="nothing is killed any more after so long, for each life")
    parser.add_argument("--thorough", action="store_true", help="every change before, inside, beside and after, each followed by a whole run")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="in each step kill only N times, where the seed says")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--blocks", type=int, default=384, help="of 64 KiB, written and compared")
    parser.add_argument("--least", type=int, default=1, metavar="N", help="fail if fewer cases were proven")
    parser.add_argument("--verbose", action="store_true")
    return parser.parse_args(argv)


def main() -> int:
    arguments = arguments_of()
    if arguments.pack:
        pack(arguments.pack)
        return 0
    from lives.caches import LIVES
    from lives.life import Life, Report, WentWrong, require_scratch

    if not arguments.origin or len(arguments.cache) < 2:
        sys.exit("Name the disks that may be overwritten: --origin once and --cache twice.")
    require_scratch([arguments.origin, *arguments.cache])
    # Whoever ends it before its time gets clean disks all the same.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_arguments: sys.exit("ended from outside"))
    report = Report()
    print(f"seed {arguments.seed}", flush=True)
    for name in arguments.life or list(LIVES):
        kind, construction, mirror = LIVES[name]
        cache = kind(construction, mirror, arguments.origin, arguments.cache)
        began = time.monotonic()
        options = {"thorough": arguments.thorough, "seed": arguments.seed, "blocks": arguments.blocks, "sample": arguments.sample, "verbose": arguments.verbose}
        life = Life(cache, report, deadline=began + arguments.budget, **options)
        with contextlib.ExitStack() as after:
            after.callback(cache.clean_up)
            try:
                life.live()
            except (WentWrong, RuntimeError, OSError) as error:
                report.failed(f"{cache.title}: {error}")
        print(f"     {cache.title}: {time.monotonic() - began:.0f} s, {life.laps} whole lives, at most {life.most_dirty} dirty at a kill", flush=True)
    late = f", {report.left_out} changes not interrupted (budget)" if report.left_out else ""
    print(f"{report.proven} proven, {report.failures} failed{late}")
    return 1 if report.failures or report.proven < arguments.least else 0


if __name__ == "__main__":
    sys.exit(main())
