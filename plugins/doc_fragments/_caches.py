# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this doc fragment is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

import json
import typing as t
from pathlib import Path

import yaml

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.types import TYPES

Entry = t.Dict[str, t.Any]

_FOLDERS = Path(__file__).resolve().parents[1] / "module_utils/_blockcache"

#: What the option of every type has. The file of a type adds paragraphs, keys and suboptions, or ``replaces`` the paragraphs of one.
_COMMON = r"""
description:
  - The caches of this host. An empty list changes nothing.
type: list
elements: dict
required: true
suboptions:
  name:
    description:
      - The name of the cache in messages and diffs.
    type: str
    required: true
  origin:
    description:
      - The persistent path of the device to cache, for example in C(/dev/disk/by-id).
    type: str
    required: true
  cache_devices:
    description:
      - The persistent path of the fast device, for example in C(/dev/disk/by-id), or the two paths of a mirror.
      - Required when O(caches[].state=present).
    type: list
    elements: path
    default: []
  mirror:
    description:
      - Whether the cache is mirrored on the two O(caches[].cache_devices).
      - An MD RAID1 array of the two devices is created for the cache.
    type: bool
    default: false
  mode:
    description:
      - V(writethrough) acknowledges a write once it is on the origin.
      - V(writeback) acknowledges a write once it is on the cache device. Until it is written back, the newest data is only there.
      - V(passthrough) serves all I/O from the origin and invalidates written blocks in the cache.
      - V(writearound) writes to the origin only. Reads are cached.
    type: str
  size:
    description: []
    type: str
  chunk_size:
    description:
      - Size of a block of the cache.
    type: str
  settings:
    description:
      - Settings of the cache. V(default) resets a setting to its default. Settings that are not listed are not changed.
    type: dict
    default: {}
  state:
    description:
      - V(present) creates the cache, or changes the existing cache as described.
      - V(flushed) leaves the cache attached, writes back all dirty blocks, and sets a mode in which no block can become dirty.
      - V(absent) flushes the cache, verifies that no block is dirty, detaches the cache and removes it.
      - What is not found is an error. V(flushed) requires a cache of this type on O(caches[].origin). V(absent) requires that O(caches[].origin)
        exists and belongs to no other cache of any type, see O(caches[].expect).
    type: str
    choices: [present, flushed, absent]
    default: present
  expect:
    description:
      - With O(caches[].state=absent), what may be found where it would be an error otherwise.
      - V(missing) accepts that O(caches[].origin) does not exist.
      - A type of cache accepts that O(caches[].origin) belongs to a cache of this type, which is not changed.
    type: list
    elements: str
    choices: [missing]
    default: []
  release_devices:
    description:
      - With O(caches[].state=absent), whether the O(caches[].cache_devices) are released too, so that the drives can be removed.
      - The array that was created for O(caches[].mirror=true) is stopped and its members are wiped.
    type: bool
    default: false
  allow_unmirrored_writeback:
    description:
      - Allow V(writeback) on a cache device that is not mirrored. If that device fails, the newest data is lost, and usually the file system with it.
    type: bool
    default: false
  flush_timeout:
    description:
      - Timeout of a flush in seconds. When it expires, the task fails and the cache stays attached.
      - Without a timeout, a flush is only aborted if the amount of dirty data has not decreased for ten minutes.
    type: int
"""

_TYPES = r"""
description:
  - Only return caches of these types. An empty list returns all types.
type: list
elements: str
default: []
"""


def _joined(common: Entry, own: Entry) -> Entry:
    """An option with what a type adds to it; of a mode, the paragraphs of those that the type has."""
    choices = own.get("choices", ())
    shared = (
        []
        if own.get("replaces")
        else [text for text in common.get("description", ()) if "choices" in common or not choices or text[2:].split(")")[0] in choices]
    )
    keys = {key: value for key, value in own.items() if key not in ("replaces", "suboptions")}
    option = {**common, **keys, "description": [*shared, *own.get("description", ())]}
    if "suboptions" in common:
        names = dict.fromkeys((*common["suboptions"], *own.get("suboptions", {})))
        option["suboptions"] = {name: _joined(common["suboptions"].get(name, {}), own.get("suboptions", {}).get(name, {})) for name in names}
    return option


def _caches(own: Entry) -> str:
    """The option ``caches`` of one type, as JSON, which is YAML."""
    option = _joined(yaml.safe_load(_COMMON), own)
    option["suboptions"]["expect"]["choices"] += TYPES
    return json.dumps({"options": {"caches": option}})


class ModuleDocFragment:
    """The option ``caches`` of the module of each type of SSD caches, as ``cachefleet.storage._caches.TYPE``, and ``types`` of the module that reads all."""

    # An annotation: the linter of documentation only reads assignments of literals.
    TYPES: str = json.dumps({"options": {"types": {**yaml.safe_load(_TYPES), "choices": list(TYPES)}}})


for _path in _FOLDERS.glob("*/*.yml"):
    setattr(ModuleDocFragment, _path.stem.upper(), _caches(yaml.safe_load(_path.read_text())))
