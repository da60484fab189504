# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The job that was sent to a host, as the results folder has it."""

from __future__ import annotations

from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import JOB_FILE, ResultsError
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.untrusted import read_limited

#: Bytes of a job file that are read; a job has hundreds.
_LARGEST_JOB = 256 * 1024


def job_options(folder: Path) -> tuple[dict[str, str], tuple[dict[str, str], ...]]:
    """The options of a ``job.fio``, all together and those in effect in each section: ini sections of ``option=value`` or bare ``option`` (fio HOWTO,
    job file format), the first of which is ``[global]``."""
    try:
        text = read_limited(f"{folder}/{JOB_FILE}", _LARGEST_JOB).decode(errors="replace")
    except ResultsError:
        return {}, ()
    options: dict[str, str] = {}
    parts: list[dict[str, str]] = [{}]
    for line in text.splitlines():
        line = line.strip()
        if line and line[0] == "[":
            parts.append({})
        elif line and line[0] not in "#;":
            option, _equals, value = line.partition("=")
            options[option.strip()] = parts[-1][option.strip()] = value.strip()
    return options, tuple({**parts[1], **part} for part in parts[2:]) if len(parts) > 2 else ()
