# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""One self-contained zip application of a proof and everything that it imports."""

from __future__ import annotations

import zipfile
from pathlib import Path

_COLLECTION = "ansible_collections/cachefleet/storage/plugins/module_utils"


def pack(destination: str, program: Path) -> None:
    """Write a zip application that needs nothing but python3 and the tools of the target.

    :param program: the script in ``tests/rack`` that it runs.
    """
    import ansible.module_utils

    sources = (
        (Path(ansible.module_utils.__path__[0]), "ansible/module_utils"),
        (program.parents[2] / "plugins/module_utils", _COLLECTION),
        (program.parent / "proofs", "proofs"),
    )
    with zipfile.ZipFile(destination, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(program, "__main__.py")
        for folder, name in sources:
            for file in folder.rglob("*.py"):
                archive.write(file, f"{name}/{file.relative_to(folder)}")
        # A zip file has no folders, and so no namespace packages, unless each says that it is a package.
        packages = {str(parent) for name in archive.namelist() for parent in Path(name).parents if str(parent) != "."}
        for package in sorted(packages - {str(Path(name).parent) for name in archive.namelist() if name.endswith("/__init__.py")}):
            archive.writestr(f"{package}/__init__.py", "")
