# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""maxCache of the simulated arcconf: the pool of series 6, the container of series 7 and 8, the volumes of SmartRAID.

The words and rules come from the command reference. Sentences of refusals that it does not give are guessed; they are marked.
"""

from __future__ import annotations

import functools
import typing as t

from . import arcconf_state as now
from .arcconf_call import NOT_SUPPORTED, AbortedError, Call, InvalidArgumentsError, number, switch
from .simulator import State

FLUSHING = "Please wait for the flushing to complete"
_LEAST_DRIVES = {"volume": 1, "simple_volume": 1, "0": 1, "1": 2, "1e": 3, "5": 3, "10": 4}
#: RAID levels as GETCONFIG writes them, where that is not just in capitals.
_WRITTEN = {"volume": "Volume", "simple_volume": "Simple_volume"}
_LEAST_SIZE = 16384  # MB: 16 GB
# Guessed sentences.
_ALREADY = "The specified maxCache setting is the same as the current setting."
_NO_DEVICE = "No maxCache device created"
_NOT_AN_SSD = "Only SSDs can be used for maxCache."
_IN_USE = "The specified device is already in use."
_NOT_REDUNDANT = "maxCache write cache is not supported on a non-redundant maxCache device."
_SECOND = "A maxCache device already exists on the controller."


def set_maxcache(call: Call) -> None:
    """SETMAXCACHE."""
    if not call.words:
        raise InvalidArgumentsError
    kind = now.maxcache_kind(call.controller)
    form, rest = call.words[0].upper(), call.words[1:]
    forms: dict[str, t.Callable[[Call, list[str]], None]] = {"LOGICALDRIVE": _logical_drives}
    if kind in ("pool", "container"):
        forms.update({"FLUSHANDFETCHRATE": functools.partial(_number, "flush_rate", 1, 1000), "RWBALANCE": _balance})
    if kind == "pool":
        forms.update({"ADDTOPOOL": _add_to_pool, "REMOVEFROMPOOL": _remove_from_pool})
    if kind == "container":
        forms["DIRTYPAGETHRESHOLD"] = functools.partial(_number, "threshold", 1, 100)
    if kind is None:
        raise AbortedError(NOT_SUPPORTED)
    if form not in forms:
        raise InvalidArgumentsError
    call.needs_raid_mode()
    forms[form](call, rest)


def _logical_drives(call: Call, rest: list[str]) -> None:
    words = [word.lower() for word in rest]
    count = next((index for index, word in enumerate(words) if not word.isdigit()), len(words))
    if not count or len(words) == count:
        raise InvalidArgumentsError
    what, values = words[count], words[count + 1 :]
    smart = now.maxcache_kind(call.controller) == "smart"
    policies = ("wb", "wt") if smart else ("wb", "instwb", "wt")
    if what == "readcache" and not smart and len(values) == 1:
        wanted: dict[str, t.Any] = {"read": switch(values[0])}
    elif what == "writecache" and not smart and len(values) in (1, 3):
        wanted = {"write": switch(values[0])}
        if len(values) == 3:
            if values[1] != "maxcachewritepolicy" or values[2] not in policies:
                raise InvalidArgumentsError
            wanted["policy"] = values[2].upper()
    elif what == "maxcachewritepolicy" and len(values) == 1 and values[0] in policies:
        wanted = {"policy": values[0].upper()}
    else:
        raise InvalidArgumentsError
    volumes = [_volume(call, word) for word in rest[:count]]
    for volume in volumes:
        _check(call, volume, wanted)
    if all(volume["maxcache"][key] == value for volume in volumes for key, value in wanted.items()):
        raise AbortedError(_ALREADY)
    for volume in volumes:
        change(call.controller, volume, wanted)


def _volume(call: Call, word: str) -> State:
    """A volume by its own number or, on SmartRAID, by the number of the maxCache volume on top of it."""
    wanted = number(word)
    container = next((one for one in call.controller["maxcache"].get("containers") or [] if one["id"] == wanted and one["data"] is not None), None)
    return call.volume(str(container["data"]) if container else word)


def _check(call: Call, volume: State, wanted: t.Mapping[str, t.Any]) -> None:
    controller, kind = call.controller, now.maxcache_kind(call.controller)
    switches_on = wanted.get("read") or wanted.get("write")
    if kind == "pool":
        if switches_on and not any(drive["pool"] for drive in controller["drives"]):
            raise AbortedError(_NO_DEVICE)
        if ("write" in wanted or "policy" in wanted) and not controller["maxcache"]["write_feature"]:
            raise AbortedError(NOT_SUPPORTED)
        return
    container = now.container_of(controller, volume)
    if container is None:
        if switches_on or kind == "smart":
            raise AbortedError(_NO_DEVICE)
        return
    writes = wanted.get("write") or (wanted.get("policy", "WT") != "WT" and volume["maxcache"]["write"])
    if writes and container["raid"].lower() not in now.REDUNDANT:
        raise AbortedError(_NOT_REDUNDANT)


def change(controller: State, volume: State, wanted: t.Mapping[str, t.Any]) -> None:
    """Settings of one volume; a volume that stops caching writes has to be flushed."""
    settings = volume["maxcache"]
    before = now.caches_writes(controller, volume)
    settings.update(wanted)
    after = now.caches_writes(controller, volume)
    if after:
        settings.update(used=True, flush_left=0)
    elif before:
        settings["flush_left"] = controller["flush_reads"]


def flush_a_little(controller: State) -> None:
    """What happens between two readings: every volume that is being flushed comes nearer to clean."""
    for volume in controller["volumes"]:
        if volume["maxcache"]["flush_left"]:
            volume["maxcache"]["flush_left"] -= 1


def _balance(call: Call, rest: list[str]) -> None:
    if len(rest) != 2:
        raise InvalidArgumentsError
    _store(call, "balance", [number(word, 1, 10) for word in rest])


def _number(key: str, low: int, high: int, call: Call, rest: list[str]) -> None:
    if len(rest) != 1:
        raise InvalidArgumentsError
    _store(call, key, number(rest[0], low, high))


def _store(call: Call, key: str, value: t.Any) -> None:
    if call.controller["maxcache"][key] == value:
        raise AbortedError(_ALREADY)
    call.controller["maxcache"][key] = value


def _add_to_pool(call: Call, rest: list[str]) -> None:
    for drive in _free_ssds(call, rest):
        drive.update(pool=True, state="Online")


def _remove_from_pool(call: Call, rest: list[str]) -> None:
    drives = call.drives(rest)
    if not all(drive["pool"] for drive in drives):
        raise AbortedError("Disk specified is not assigned to MaxCache pool")
    _refuse_dirty(call.controller)
    for drive in drives:
        drive.update(pool=False, state="Ready")


def _refuse_dirty(controller: State, volumes: t.Sequence[State] | None = None) -> None:
    if any(now.is_dirty(controller, volume) for volume in (controller["volumes"] if volumes is None else volumes)):
        raise AbortedError(FLUSHING)


def create(call: Call) -> None:
    """CREATE <C#> MAXCACHE …; other objects are not simulated."""
    if not call.words or call.words[0].upper() != "MAXCACHE":
        raise InvalidArgumentsError
    kind = now.maxcache_kind(call.controller)
    if kind == "container":
        call.needs_raid_mode()
        _create_container(call, call.words[1:])
    elif kind == "smart":
        call.needs_raid_mode()
        _create_smart(call, call.words[1:])
    else:
        raise AbortedError(NOT_SUPPORTED)


def _create_container(call: Call, words: list[str]) -> None:
    if len(words) < 4:
        raise InvalidArgumentsError
    raid = words[1].lower()
    if raid not in ("volume", "simple_volume", "0", "1", "1e", "5"):
        raise InvalidArgumentsError
    wanted = None if words[0].lower() == "max" else number(words[0], 1)
    drives = _free_ssds(call, words[2:])
    if call.controller["maxcache"]["containers"]:
        raise AbortedError(_SECOND)
    size = _capacity(call, raid, drives, wanted)
    call.confirm("All data on the specified devices will be lost.", "Do you wish to continue?")
    for drive in drives:
        drive["state"] = "Online"
    call.printed.append("Creating maxCache device: MaxCache 0")
    call.controller["maxcache"]["containers"].append(_container(100, "MaxCache 0", _WRITTEN.get(raid, raid.upper()), size, drives, data=None))


def _capacity(call: Call, raid: str, drives: t.Sequence[State], wanted: int | None) -> int:
    if len(drives) < _LEAST_DRIVES[raid] or (raid in ("1", "volume") and len(drives) > max(2, _LEAST_DRIVES[raid])):
        raise AbortedError("The number of devices is not valid for the RAID level.")
    data = {"1": 1, "1e": len(drives) // 2, "5": len(drives) - 1, "10": len(drives) // 2}.get(raid, len(drives))
    most = data * (min(drive["size"] for drive in drives) - 1024)
    if wanted is not None and wanted > most:
        raise AbortedError("The specified size exceeds the available space.")
    return most if wanted is None else wanted


def _container(
    number_of_it: int, name: str, raid: str, size: int, drives: t.Sequence[State], *, data: int | None, line: int = 64, array: int | None = None
) -> State:
    return {
        "id": number_of_it,
        "name": name,
        "raid": raid,
        "size": size,
        "status": "Optimal",
        "members": [[drive["channel"], drive["device"]] for drive in drives],
        "data": data,
        "line": line,
        "array": array,
    }


def _create_smart(call: Call, words: list[str]) -> None:
    policy, line = "WB", 64
    while len(words) > 2 and words[0].lower() in ("wcache", "cachelinesize"):
        option, value = words[0].lower(), words[1].lower()
        if value not in {"wcache": ("wt", "wb"), "cachelinesize": ("64", "256")}[option]:
            raise InvalidArgumentsError
        policy, line = (value.upper(), line) if option == "wcache" else (policy, int(value))
        words = words[2:]
    if len(words) < 6 or words[0].lower() != "datald" or words[3].lower() not in ("0", "1", "5", "10"):
        raise InvalidArgumentsError
    raid, wanted = words[3].lower(), number(words[2], 1)
    volume = call.volume(words[1])
    drives = _free_ssds(call, words[4:])
    _check_smart(call, volume, policy, raid)
    size = _capacity(call, raid, drives, wanted)
    if size < _LEAST_SIZE or size > volume["size"]:
        raise AbortedError("The size of the maxCache device is not between 16 GB and the size of the data logical device.")
    call.confirm("All data on the specified devices will be lost.", "Do you wish to continue?")
    for drive in drives:
        drive["state"] = "Online"
    taken = [one["id"] for one in (*call.controller["volumes"], *call.controller["maxcache"]["containers"])]
    arrays = [one["array"] for one in (*call.controller["volumes"], *call.controller["maxcache"]["containers"])]
    made = _container(
        max(taken) + 1,
        f"maxCache {len(call.controller['maxcache']['containers']) + 1}",
        raid,
        size,
        drives,
        data=volume["id"],
        line=line,
        array=max(arrays) + 1,
    )
    call.controller["maxcache"]["containers"].append(made)
    change(call.controller, volume, {"read": True, "write": True, "policy": policy})
    volume["maxcache"]["used"] = True


def _check_smart(call: Call, volume: State, policy: str, raid: str) -> None:
    controller = call.controller
    if now.container_of(controller, volume) is not None:
        raise AbortedError(_SECOND)
    if volume["ssd_bypass"]:
        raise AbortedError(f"The specified operation cannot be performed as SSD I/O bypass has been enabled on array {volume['array']}.")
    if volume["caching"]:
        raise AbortedError("Controller cache is enabled on the logical drive, maxCache cannot be created.")
    if not now.protected(controller, call.faults) or call.faults.get("cache_permanently_disabled"):
        raise AbortedError("The specified operation cannot be performed as battery status is not Ok.")
    if policy == "WB" and raid not in now.REDUNDANT:
        raise AbortedError(_NOT_REDUNDANT)


def _free_ssds(call: Call, words: list[str]) -> list[State]:
    drives = call.drives(words)
    if len({drive["device"] for drive in drives}) != len(drives):
        raise InvalidArgumentsError
    if not all(drive["ssd"] and drive["block"] == 512 for drive in drives):
        raise AbortedError(_NOT_AN_SSD)
    if not all(drive["state"] == "Ready" for drive in drives):
        raise AbortedError(_IN_USE)
    return drives


def delete(call: Call) -> None:
    """DELETE <C#> MAXCACHE [ld]."""
    if not call.words or call.words[0].upper() != "MAXCACHE":
        raise InvalidArgumentsError
    kind = now.maxcache_kind(call.controller)
    if kind not in ("container", "smart"):
        raise AbortedError(NOT_SUPPORTED)
    call.needs_raid_mode()
    containers: list[State] = call.controller["maxcache"]["containers"]
    if kind == "container":
        if len(call.words) != 1:
            raise InvalidArgumentsError
        if not containers:
            raise AbortedError(_NO_DEVICE)
        doomed = containers[0]
    else:
        if len(call.words) != 2:
            raise InvalidArgumentsError
        wanted = number(call.words[1])
        doomed = next((container for container in containers if container["id"] == wanted), {})
        if not doomed:
            raise AbortedError(f"maxCache logical device {wanted} does not exist.")
    volumes = [volume for volume in call.controller["volumes"] if doomed["data"] in (None, volume["id"])]
    _refuse_dirty(call.controller, volumes)
    if kind == "smart":
        call.confirm("All data on the maxCache logical device will be lost.", "Do you wish to continue?")
    for drive in now.members(call.controller, doomed):
        drive["state"] = "Ready"
    for volume in volumes:
        volume["maxcache"].update(read=False, write=False, policy="WB", used=False)
    containers.remove(doomed)
