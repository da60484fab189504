# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The folder in which an image is put together: what is in it is run as root, so other users of the host must not reach it.

Root builds in a folder of mode 0700. An ordinary user builds in a user namespace whose root is one of the user's subordinate ids
and another user for the folder: an access control list admits that id alone.

Sources: acl(5); ``linux/posix_acl_xattr.h`` (the layout of the extended attribute, little endian); user_namespaces(7) (uid_map).
"""

from __future__ import annotations

import os
import pathlib
import stat
import struct
import tempfile
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotUnderstood, Refused

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner

_ATTRIBUTE = "system.posix_acl_access"
_VERSION = 2
_OWNER, _USER, _GROUP, _MASK, _OTHERS = 0x01, 0x02, 0x04, 0x10, 0x20
_ALL = 7
_NO_ID = 0xFFFFFFFF


def make_build_folder(scratch: pathlib.Path, namespace_root: int | None = None) -> pathlib.Path:
    """A new folder that only this user may enter, and the root of this user's namespace.

    :param namespace_root: the user id on the host that is root in the namespace; ``None`` if there is none.
    :raises Refused: if other users could exchange the folder, or it cannot be shared with that id alone.
    """
    require_protected(scratch)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="virtual-rack-image.", dir=str(scratch)))
    if namespace_root is not None:
        try:
            os.setxattr(folder, _ATTRIBUTE, access_list(namespace_root))
        except OSError as error:
            folder.rmdir()
            raise Refused(
                f"The file system of {scratch} does not support access control lists ({error.strerror}), which an image that is built by an ordinary"
                " user needs: set scratch_dir to a folder on another file system, or run this task with become.",
                item=str(scratch),
            ) from None
    return folder


def access_list(user: int) -> bytes:
    """The attribute that gives all permissions to the owner and to one more user, and none to others."""
    entries = ((_OWNER, _ALL, _NO_ID), (_USER, _ALL, user), (_GROUP, 0, _NO_ID), (_MASK, _ALL, _NO_ID), (_OTHERS, 0, _NO_ID))
    return struct.pack("<I", _VERSION) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


def require_protected(folder: pathlib.Path) -> None:
    """:raises Refused: if other users may exchange what is in a folder, or the folder itself."""
    real = pathlib.Path(os.path.realpath(folder))
    for place in (real, *real.parents):
        mode = place.stat().st_mode if place.exists() else 0
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise Refused(f"Every user of this host can replace the contents of {place}: run 'chmod o-w {place}', or set another folder.", item=str(folder))


def namespace_root(runner: Runner) -> int:
    """The user id on the host that is root in the namespaces of mmdebstrap.

    :raises NotUnderstood: if there is no such id.
    """
    completed = runner.run(["mmdebstrap", "--unshare-helper", "cat", "/proc/self/uid_map"])
    for line in completed.stdout.splitlines():
        fields = line.split()
        if len(fields) == 3 and fields[0] == "0" and fields[1].isdigit():
            return int(fields[1])
    raise NotUnderstood(
        f"The user id of root in a user namespace of mmdebstrap could not be read from '{completed.stdout.strip()[:200]}'.", completed=completed
    )
