# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.

"""What a host may send in answer to a command or module: its length, and the memory of the worker that receives it.

Connection plugins keep in memory whatever a host sends, and Ansible copies it several times before an action plugin sees it. Only a limit of
the process (setrlimit(2)) holds in all of them: an allocation above it fails.
"""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
import traceback
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import TooMuchOutput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import plain
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import MIB, format_size

#: Bytes of the answer of a module. The largest of real hosts have a tenth.
MODULE_ANSWER = 16 * MIB
#: Bytes of the answer of a shell command: a status, a time, a message.
COMMAND_ANSWER = MIB

#: An answer of permitted length has several copies: bytes, text, lines, values.
_COPIES = 4
#: What the worker may allocate besides, for example for modules that it imports.
_MEMORY = 128 * MIB


@contextlib.contextmanager
def limited_answer(host: str, limit: int = MODULE_ANSWER) -> t.Iterator[None]:
    """Limit the memory of this worker while a host answers, whichever connection plugin is used.

    To be put around each call of ``ActionBase._execute_module`` and ``ActionBase._low_level_execute_command``. Calls may be nested. What was
    received may still be longer than ``limit``: see :func:`require_short`. Processes that are started meanwhile, as ssh, are not limited.

    :param host: its name, for the message.
    :param limit: bytes that an answer may have.
    :raises TooMuchOutput: if the answer needs more memory than one of this length.
    """
    failed: BaseException | None = None
    try:
        with limited_process(_COPIES * limit + _MEMORY):
            yield
    except Exception as error:
        if not _is_out_of_memory(error):
            raise
        failed = error
    if failed is not None:
        # Its frames have what was received.
        traceback.clear_frames(failed.__traceback__)
        raise _too_long(host, limit)


def require_short(reply: t.Mapping[str, t.Any], host: str, limit: int = MODULE_ANSWER) -> None:
    """:raises TooMuchOutput: if what ``ActionBase._low_level_execute_command`` returned is longer than a host may answer; to be called before it is parsed."""
    if any(len(reply.get(name) or "") > limit for name in ("stdout", "stderr")):
        raise _too_long(host, limit)


def _too_long(host: str, limit: int) -> TooMuchOutput:
    return TooMuchOutput(f"Host {plain(host)} answered with more than {format_size(limit)}, which no answer has: it was not read. Check that host.", item=host)


def _is_out_of_memory(error: BaseException | None) -> bool:
    """Whether it is that, or was made from that by a connection plugin."""
    seen: list[BaseException] = []
    while error is not None and error not in seen:
        if isinstance(error, MemoryError):
            return True
        seen.append(error)
        error = error.__cause__ or error.__context__
    return False


@contextlib.contextmanager
def limited_process(more_memory: int, file_size: int | None = None) -> t.Iterator[None]:
    """Soft limits of this process, put back in every ending.

    :param more_memory: bytes above what it has now (RLIMIT_AS). Processes that it starts are not limited: some reserve far more than they
        use, and with the connection ``local`` fio is one of them.
    :param file_size: of each file that is written (RLIMIT_FSIZE), also by the processes that it starts.
    """
    maxima = {} if file_size is None else {resource.RLIMIT_FSIZE: file_size}
    memory = _address_space()
    if memory is not None:
        maxima[resource.RLIMIT_AS] = memory + more_memory
    before = {what: resource.getrlimit(what) for what in maxima}
    start = subprocess.Popen.__init__

    def start_unlimited(*args: t.Any, **options: t.Any) -> None:
        own = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, before.get(resource.RLIMIT_AS, own))
        try:
            start(*args, **options)
        finally:
            resource.setrlimit(resource.RLIMIT_AS, own)

    try:
        for what, value in maxima.items():
            known = [one for one in (value, *before[what]) if one != resource.RLIM_INFINITY]
            resource.setrlimit(what, (min(known), before[what][1]))
        # Every connection plugin that starts a process does it with this class.
        subprocess.Popen.__init__ = start_unlimited  # type: ignore[method-assign]
        yield
    finally:
        subprocess.Popen.__init__ = start  # type: ignore[method-assign]
        for what, limits in before.items():
            resource.setrlimit(what, limits)


def _address_space() -> int | None:
    """Bytes that this process has; ``None`` where the kernel does not report it."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")
