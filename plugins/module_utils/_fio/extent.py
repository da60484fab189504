# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""How far a job reaches into its target: the end of the last block that it may read or write, or in a folder its files. Everything is in bytes.

Source: fio 3.33 and 3.41. ``get_start_offset`` and ``setup_files`` (``filesetup.c``) give each job the range from its start on;
``get_next_offset`` (``io_u.c``) begins a block anywhere in it, and ``fill_io_u`` drops one that ends beyond the file or device. A block
of a fixed size that begins in the range is not cut at its end; one of a variable size always fits (``io_u_fits``). Of several files ``filesize`` is
the size of each, a range is met by a file of any size in it, and ``size`` without it is divided by ``nrfiles``.
"""

from __future__ import annotations

import math
import re
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import format_size, parse_size

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.sections import Job, Section

_BLOCK = 4096
_ZONES = ("zonesize", "zonerange", "zoneskip", "zonecapacity")
_TRIM_AND_WRITE = frozenset({"trimwrite", "randtrimwrite"})
#: What is named when a job reaches too far, the first that the job has.
_MOVERS = (
    "read_iolog",
    "fill_device",
    "zonemode",
    *_ZONES,
    "filesize",
    "offset",
    "offset_increment",
    "offset_align",
    "size",
    "rw",
    "bs",
    "bsrange",
    "bssplit",
    "ba",
)


#: Files of one job at most: each takes some time to be made, memory in fio, and an inode.
MOST_FILES = 65536
#: Options that only mean something where a job has several files.
OPTIONS_OF_FILES = ("nrfiles", "openfiles")


class BlockSizes(t.NamedTuple):
    """Of one direction."""

    low: int
    high: int


def end_of_io(job: Job, *, size: int | None, device_size: int | None, is_file: bool = False) -> int:
    """The first byte behind everything that any section can touch.

    :param size: what the collection gives as ``size``; ``None`` if it gives none.
    :param device_size: of the whole device, or of the file before fio runs; ``None`` if it is not known.
    :param is_file: fio makes a file as long as the longest section needs, and clips blocks at its end.
    :raises BadInput: if an option makes it impossible to compute.
    """
    clones = job.threads_elsewhere
    ends, lengths = [0], [0]
    replayed = max((section.replay.end for section in job.sections if section.replay is not None), default=0)
    for section in job.sections:
        if section.replay is not None:
            continue
        clones += int(section.value("numjobs") or 1)
        # fio 2.1 multiplied offset_increment by the number of the process among all, later versions by that among its clones.
        start = _start(section, clones - 1, device_size)
        length = _length(section, start, size, device_size, is_file=is_file)
        lengths.append(start + length)
        ends.append(start + _reach(section, start, length))
    whole = max(device_size or 0, *lengths) if is_file else device_size
    if any(_takes_all(section) for section in job.sections):
        return max(replayed, _known(whole, job.sections[0], is_file=is_file))
    # fio does not drop what a log does behind the end of the device.
    return max(replayed, max(ends) if whole is None else min(max(ends), whole))


def what_moves_the_end(job: Job) -> str:
    """The option that causes an end that is too far."""
    return _first_of(_MOVERS, job.sections) or "bs"


def _first_of(options: t.Sequence[str], sections: t.Sequence[Section]) -> str | None:
    return next((name for name in options for section in sections if _moves(name, section.value(name))), None)


def _moves(option: str, value: str | None) -> bool:
    """Whether an option with this value is worth naming: rw is by its modifier only."""
    return value is not None and value not in ("0", "none") and (option != "rw" or ":" in value)


def starts_at_zero(job: Job) -> bool:
    """Whether no section leaves out the beginning of its target."""
    return all(_number(section.value(name)) in (None, 0) for section in job.sections for name in ("offset", "offset_increment"))


def covers_target(job: Job, size: int | None) -> bool:
    """Whether every section reaches over the whole target.

    :param size: what the collection gives as ``size``; ``None`` if it gives none.
    """
    if any(section.replay is not None for section in job.sections):
        return False
    whole = all(section.value("size") in (None, "100%") and section.value("filesize") is None for section in job.sections)
    return size is None and whole and starts_at_zero(job)


def _start(section: Section, last_clone: int, device_size: int | None) -> int:
    """Where the last clone begins."""
    increment = _of(section, "offset_increment", device_size)
    start = _of(section, "offset", device_size) + last_clone * increment
    percent = any((section.value(name) or "").endswith("%") for name in ("offset", "offset_increment"))
    align = section.value("offset_align")
    if not percent and align is None:
        return start
    step = min(sizes.low for sizes in block_sizes(section)) if align is None else parse_size(align)
    return -(-start // max(step, 1)) * max(step, 1)


def _length(section: Section, start: int, size: int | None, device_size: int | None, *, is_file: bool) -> int:
    filesize = section.value("filesize")
    if filesize is not None:
        # Up to the larger size, wherever it begins: the smaller one only shortens it.
        return max(0, max(parse_size(part) for part in re.split(r"[-:,]", filesize)) - start)
    own = section.value("size")
    if is_file and own == "100%":
        # All that the collection gives of the file.
        own = None
    if own is not None and own.endswith("%"):
        return _of(section, "size", device_size)
    chosen = parse_size(own) if own is not None else size
    return chosen or max(0, _known(device_size, section, is_file=is_file) - start)


def _reach(section: Section, start: int, length: int) -> int:
    """From the start of the range to the end of the last block that can begin in it."""
    if not length or _is_purely_random(section):
        return length
    sizes = block_sizes(section)
    step = _step(section, sizes, start, length)
    last = (length - 1) // step * step
    varies = section.value("bs_is_seq_rand") == "1"
    return max([length, *(last + one.high for one in sizes if one.low == one.high or varies)])


def _is_purely_random(section: Section) -> bool:
    """Whether fio numbers the whole blocks that fit into the range and draws from these numbers.

    With several sizes its map of used blocks counts the smallest ones, and a larger one can begin in the last of them.
    """
    mode = section.value("rw") or "read"
    others = (section.value("ba"), section.value("bs_is_seq_rand"), section.value("sprandom"))
    return (
        mode.startswith("rand")
        and mode != "randtrimwrite"
        and ":" not in mode
        and (section.value("percentage_random") or "100") == "100"
        and (section.value("random_distribution") or "random") == "random"
        and not any(others)
        and len({size for one in block_sizes(section) for size in one}) == 1
    )


def _step(section: Section, sizes: t.Sequence[BlockSizes], start: int, length: int) -> int:
    """A divisor of all places, counted from the start of the range, at which a block can begin."""
    if section.value("bs_is_seq_rand") == "1" or section.value("sprandom") == "1" or any(one.low != one.high for one in sizes):
        return 1
    mode, _colon, modifier = (section.value("rw") or "read").partition(":")
    step = _gcd(one.low for one in sizes)
    for part in (section.value("ba") or "").split(","):
        step = math.gcd(step, parse_size(part) if part else 0)
    if modifier and not mode.startswith("rand"):
        # With a hole after each block fio comes back to the offset itself, and backwards it begins at the end of the range.
        step = _gcd([step, parse_size(modifier.lstrip("-")), start, length if modifier.startswith("-") else 0])
    elif mode in _TRIM_AND_WRITE:
        # fio counts the offset twice in the write that follows a trim.
        step = math.gcd(step, start)
    return max(step, 1)


def _gcd(numbers: t.Iterable[int]) -> int:
    # math.gcd takes more than two numbers only from Python 3.9 on.
    found = 0
    for number in numbers:
        found = math.gcd(found, number)
    return found


def block_sizes(section: Section) -> tuple[BlockSizes, ...]:
    """Of reading, writing and trimming. Of both together fio draws the sizes of ``bssplit``, within the limits of the one it read last."""
    found_by = []
    for option, separator in (("bssplit", ":"), ("bsrange", r"[-:]")):
        text = section.value(option)
        if text is not None:
            groups = [[parse_size(part.split("/")[0]) for part in re.split(separator, group)] for group in text.split(",")]
            found_by.append(_for_all_directions([BlockSizes(min(group), max(group)) for group in groups]))
    if found_by:
        return tuple(BlockSizes(min(one.low for one in of), max(one.high for one in of)) for of in zip(*found_by))
    found = [parse_size(part) if part else _BLOCK for part in (section.value("bs") or str(_BLOCK)).split(",")]
    return _for_all_directions([BlockSizes(one, one) for one in found])


def _for_all_directions(given: list[BlockSizes]) -> tuple[BlockSizes, ...]:
    return tuple([*given, given[-1], given[-1]][:3])


def _takes_all(section: Section) -> bool:
    """Whether the range is left, up to the end of the device."""
    zoned = (section.value("zonemode") or "none") != "none" or any(_number(section.value(name)) for name in _ZONES)
    return zoned or section.value("fill_device") == "1"


def _known(device_size: int | None, section: Section, *, is_file: bool) -> int:
    if is_file:
        return device_size or 0
    if device_size is None:
        option = _first_of(_MOVERS, [section]) or "rw"
        raise BadInput(f"{option} makes the job {section.name} depend on the size of the whole device", option=option)
    return device_size


def _of(section: Section, option: str, device_size: int | None) -> int:
    """A number of bytes that may be given as a percentage."""
    text = section.value(option)
    if text is None:
        return 0
    if not text.endswith("%"):
        return parse_size(text)
    percent = int(text[:-1])
    if device_size is None and percent:
        raise BadInput(f"{option} in percent makes the job {section.name} depend on the size of the whole device", option=option)
    return (device_size or 0) * percent // 100


def _number(text: str | None) -> int | None:
    return None if text is None else int(text[:-1]) if text.endswith("%") else parse_size(text)


# ---------------------------------------------------------------------------------------------------------------------
# Several files in a folder
#
# Each process of a section has files of its own, as in fio. They are all made before fio starts, which never makes, extends or removes one.
# Their names do not depend on those of sections, so that the next cell finds the files of the last.


def count_of(section: Section) -> int:
    """Files of each of its processes."""
    return int(section.value("nrfiles") or 1)


def names_of(number: int) -> str:
    """The option ``filename_format`` of a section, by its place in the job."""
    return f"s{number}.$jobnum.$filenum"


def files_of(job: Job) -> dict[str, int]:
    """Every file with its size in bytes."""
    return {
        f"s{number}.{clone}.{place}": size
        for number, section in enumerate(job.sections)
        for clone in range(int(section.value("numjobs") or 1))
        for place, size in enumerate(_sizes(section))
    }


def bytes_of(section: Section) -> int:
    """Of all files of one of its processes."""
    return sum(_sizes(section))


def open_at_once(job: Job) -> int:
    """Files that one process of fio has open at most."""
    each = [(int(section.value("openfiles") or count_of(section)), int(section.value("numjobs") or 1)) for section in job.sections]
    if any(section.has_flag("thread") for section in job.sections):
        return sum(count * jobs for count, jobs in each)
    return max(count for count, _jobs in each)


def _sizes(section: Section) -> list[int]:
    count = count_of(section)
    filesize = section.value("filesize")
    if filesize is None:
        each = -(-parse_size(section.value("size") or "0") // count)
        block = max(sizes.high for sizes in block_sizes(section))
        # fio rounds to its blocks, up or down.
        return [-(-each // block) * block] * count
    bounds = [parse_size(part) for part in re.split(r"[-:,]", filesize)]
    low, high = min(bounds), max(bounds)
    # Over the whole range, the same in every run.
    spread = [low + (high - low) * place // max(count - 1, 1) for place in range(count)]
    aligned = [size // _BLOCK * _BLOCK for size in spread]
    return [whole if whole >= low else size for whole, size in zip(aligned, spread)]


def check_folder(job: Job, size: int | None, name: str) -> None:
    """Whether a job can be measured in a folder.

    :param size: bytes at most of all files together; ``None`` for no limit.
    :raises BadInput: if the number or the sizes of its files are not known, or too much.
    """
    for section in job.sections:
        if section.replay is not None or section.discards or section.value("ioengine") == "sg":
            raise BadInput(f"{name}: {section.name} replays a log, discards or sends commands to a drive, which is not supported in a directory.", item=name)
        if not section.has_size or (section.value("size") or "").endswith("%"):
            raise BadInput(f"{name}: {section.name} runs in a directory and does not set how large its files are: set filesize.", item=name, option="filesize")
        for option in ("offset", "offset_increment", "offset_align", "fill_device", "file_append", "zonemode", "pre_read"):
            if section.value(option) not in (None, "0", "none"):
                raise BadInput(f"{name}: {option} is not supported in a directory, whose files are used as a whole.", item=name, option=option)
    count = sum(count_of(section) * int(section.value("numjobs") or 1) for section in job.sections)
    if count > MOST_FILES:
        raise BadInput(f"{name}: nrfiles of all processes together is {count}, and at most {MOST_FILES} files are made.", item=name, option="nrfiles")
    total = sum(files_of(job).values())
    if size is not None and total > size:
        raise BadInput(
            f"{name}: its {count} files have {format_size(total)} ({total} bytes) together, but the target has a size of {size} bytes ({format_size(size)}): "
            "give the target a larger size, or the job fewer or smaller files.",
            item=name,
            option="nrfiles",
        )
