# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The simulated arcconf behaves: states change and stay, faults change what is effective, refusals have their words and codes."""

from __future__ import annotations

import copy
import re
import typing as t

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._raid.arcconf.text import parse
from ansible_collections.cachefleet.storage.tests.simulators.arcconf import Arcconf
from ansible_collections.cachefleet.storage.tests.simulators.arcconf_models import MODELS
from ansible_collections.cachefleet.storage.tests.simulators.simulator import Answer

OLD, POOL, CONTAINER, SERIES7, BATTERY = "Adaptec ASR-6805", "Adaptec 6805Q", "Adaptec ASR-81605ZQ", "Adaptec ASR-71605", "IBM ServeRAID 8k"
SMART, PLAIN_SMART, HBA = "Adaptec SmartRAID 3154-8i", "Adaptec SmartRAID 3204-8i", "Adaptec HBA 1100-16i"
SUCCESS = "Command completed successfully.\n"
ABORTED = "\n\nCommand aborted."


def arcconf(model: str, **options: t.Any) -> Arcconf:
    return Arcconf({"faults": {}, "controllers": [MODELS[model](**options)]})


def run(tool: Arcconf, words: str) -> Answer:
    return tool.answer(words.split(), "")


def done(tool: Arcconf, words: str) -> str:
    answer = run(tool, words)
    assert answer.rc == 0, answer.stdout
    assert answer.stdout.endswith(SUCCESS)
    return answer.stdout


def values(tool: Arcconf, label: str, words: str = "GETCONFIG 1 AL") -> list[str]:
    """Every value that is printed for a label, in order."""
    return re.findall(rf"(?m)^ +{re.escape(label)} *: ?(.*)$", done(tool, words))


def refused(tool: Arcconf, words: str, sentence: str) -> None:
    before = copy.deepcopy(tool.state)
    answer = run(tool, words)
    assert answer.rc == 2
    assert sentence in answer.stdout
    assert answer.stdout.endswith(ABORTED)
    assert tool.state == before


# ------------------------------------------------------------------------------------------------------------------ words


def test_no_arguments_print_the_menu_and_identify_the_simulator():
    text = run(arcconf(SMART), "").stdout
    assert " SETCACHE          | adjusts physical or logical drive cache mode" in text
    assert "SIMULATOR" in text


@pytest.mark.parametrize(
    ("model", "there", "absent"),
    [
        (OLD, ("LOGICALDRIVE <LogicalDrive#> <logical mode>", "DEVICE <Channel# ID#>"), ("DEVICEALL", "con|coff", "CACHERATIO")),
        (SERIES7, ("LOGICALDRIVE <LogicalDrive#> <logical mode>", "DEVICE <Channel# ID#>", "DEVICEALL"), ("con|coff", "CACHERATIO")),
        (SMART, ("<con|coff>", "DRIVEWRITECACHEPOLICY", "NOBATTERYWRITECACHE", "CACHERATIO"), ("DEVICE <Channel#", "<logical mode>")),
        (HBA, ("DEVICE <Channel# ID#>", "DEVICEALL"), ("LOGICALDRIVE", "DRIVEWRITECACHEPOLICY")),
    ],
)
def test_setcache_without_arguments_lists_supported_commands(model, there, absent):
    answer = run(arcconf(model), "SETCACHE")
    assert answer.rc == 3
    assert all(form in answer.stdout for form in there)
    assert not any(form in answer.stdout for form in absent)


@pytest.mark.parametrize(
    "words", ["setcache 1 logicaldrive 0 WT nologs", "SETCACHE 1 LogicalDrive 0 wt NOLOGS", "SetCache 1 LOGICALDRIVE 0 wT noprompt nologs"]
)
def test_arguments_are_case_insensitive(words):
    tool = arcconf(CONTAINER)
    done(tool, words)
    assert values(tool, "Write-cache setting") == ["Disabled"]


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (SERIES7, "SETCACHE 1 LOGICALDRIVE 0 con"),
        (SERIES7, "SETCACHE 1 LOGICALDRIVE 0 cwb"),
        (SERIES7, "SETCACHE 1 LOGICALDRIVE All wt"),
        (SERIES7, "SETCACHE 1 LOGICALDRIVE 0 wt please"),
        (SERIES7, "SETCACHE 1 DEVICE 0 0 wt noprompt"),
        (SERIES7, "SETCACHE 1 DEVICE 0 wt"),
        (SERIES7, "SETCACHE 1 DEVICEALL default"),
        (SERIES7, "SETCACHE 1 CACHERATIO 10 90"),
        (SERIES7, "SETCACHE one LOGICALDRIVE 0 wt"),
        (SMART, "SETCACHE 1 LOGICALDRIVE 0 wb"),
        (SMART, "SETCACHE 1 DEVICE 0 8 wt"),
        (SMART, "SETCACHE 1 DRIVEWRITECACHEPOLICY Configured"),
        (SMART, "SETCACHE 1 DRIVEWRITECACHEPOLICY HBA 3"),
        (SMART, "SETCACHE 1 DRIVEWRITECACHEPOLICY Everything 1"),
        (SMART, "SETCACHE 1 CACHERATIO 10 80"),
        (SMART, "SETCACHE 1 CACHERATIO 10 90 noprompt"),
        (SMART, "SETMAXCACHE 1 FLUSHANDFETCHRATE 100"),
        (SMART, "CREATE 1 MAXCACHE DataLD 0 MAX 1 0 10 0 11 noprompt"),
        (CONTAINER, "SETMAXCACHE 1 FLUSHANDFETCHRATE 1001"),
        (CONTAINER, "SETMAXCACHE 1 RWBALANCE 11 1"),
        (CONTAINER, "SETMAXCACHE 1 DIRTYPAGETHRESHOLD 0"),
        (CONTAINER, "SETMAXCACHE 1 LOGICALDRIVE 0 MAXCACHEWRITEPOLICY WBWITHWT"),
        (CONTAINER, "GETCONFIG 1 XX"),
        (CONTAINER, "GETCONFIG"),
        (CONTAINER, "GETCONFIG 1 PD 0"),
    ],
)
def test_invalid_arguments_print_the_usage(model, words):
    tool = arcconf(model)
    before = copy.deepcopy(tool.state)
    answer = run(tool, words)
    assert (answer.rc, "Usage: " + words.split(" ")[0] in answer.stdout) == (3, True)
    assert tool.state == before


def test_unknown_command_prints_the_menu():
    assert run(arcconf(SMART), "BLINK 1").rc == 3


def test_invalid_controller():
    for words in ("GETCONFIG 2", "SETCACHE 2 LOGICALDRIVE 0 wt", "GETCONFIG 0"):
        answer = run(arcconf(OLD), words)
        assert (answer.rc, "Invalid controller number." in answer.stdout) == (6, True)


def test_no_controller():
    tool = arcconf(OLD)
    tool.state["faults"]["no_controller"] = True
    assert run(tool, "LIST") == Answer("Controllers found: 0\n\n" + SUCCESS)
    assert run(tool, "GETCONFIG 1").rc == 6


def test_old_build_supports_neither_nologs_nor_new_cards():
    tool = Arcconf({"faults": {"old_build": True}, "controllers": [MODELS[OLD](), MODELS[SMART](number=2)]})
    assert run(tool, "SETCACHE 1 LOGICALDRIVE 0 wt nologs").rc == 3
    assert "nologs" not in run(tool, "SETCACHE").stdout
    assert run(tool, "GETCONFIG 1 AL").stdout.startswith("Controllers found: 1\n")
    done(tool, "SETCACHE 1 LOGICALDRIVE 0 wt")
    assert run(tool, "SETMAXCACHE").rc == 3


def test_fault_can_apply_to_one_controller():
    tool = Arcconf({"faults": {"battery_failed": [2]}, "controllers": [MODELS[OLD](), MODELS[OLD](number=2)]})
    assert values(tool, "Status", "GETCONFIG 1 AD") == ["ZMM Optimal"]
    assert values(tool, "Status", "GETCONFIG 2 AD") == ["ZMM Failed"]


# ---------------------------------------------------------------------------------------------------------------- aacraid


@pytest.mark.parametrize(
    ("model", "mode", "setting"),
    [
        (OLD, "wt", "Disabled (write-through)"),
        (OLD, "wb", "Enabled (write-back)"),
        (OLD, "wbb", "Enabled (write-back) when protected by battery/ZMM"),
        (BATTERY, "wbb", "Enabled (write-back) when protected by battery"),
        (CONTAINER, "wt", "Disabled"),
        (CONTAINER, "wb", "Enabled"),
        (CONTAINER, "wbb", "On when protected by battery/ZMM"),
    ],
)
def test_write_cache_of_a_volume(model, mode, setting):
    tool = arcconf(model, volumes=2)
    first = "wb" if mode == "wt" else "wt"
    done(tool, f"SETCACHE 1 LOGICALDRIVE 1 {first} noprompt")
    done(tool, f"SETCACHE 1 LOGICALDRIVE 1 {mode} noprompt")
    assert values(tool, "Write-cache setting")[1] == setting
    refused(
        tool, f"SETCACHE 1 LOGICALDRIVE 1 {mode}", "New write cache mode is the same as the old write cache mode.\nThe selected parameter will be ignored.\n"
    )


def test_read_cache_of_a_volume():
    tool = arcconf(SERIES7)
    refused(tool, "SETCACHE 1 LOGICALDRIVE 0 ron", "New read cache mode is the same as the old read cache mode.")
    done(tool, "SETCACHE 1 LOGICALDRIVE 0 roff")
    assert values(tool, "Read-cache setting") == ["Disabled"]
    assert values(tool, "Read-cache status") == ["Off"]


@pytest.mark.parametrize("fault", ["battery_failed", "learn_cycle", "capacitor_charging", "zmm_not_installed"])
def test_protected_writeback_depends_on_the_protection_unit(fault):
    for model, label, on, off in (
        (OLD, "Write-cache mode", "Enabled (write-back)", "Disabled (write-through)"),
        (CONTAINER, "Write-cache status", "On", "Off"),
    ):
        tool = arcconf(model)
        setting = values(tool, "Write-cache setting")
        assert values(tool, label) == [on]
        tool.state["faults"][fault] = True
        assert values(tool, label) == [off]
        assert values(tool, "Write-cache setting") == setting
        done(tool, "SETCACHE 1 LOGICALDRIVE 0 wb noprompt")
        assert values(tool, label) == [on]
        done(tool, "SETCACHE 1 LOGICALDRIVE 0 wbb")
        tool.state["faults"].clear()
        assert values(tool, label) == [on]


@pytest.mark.parametrize(
    ("model", "fault", "label", "said"),
    [
        (OLD, "battery_failed", "Status", "ZMM Failed"),
        (OLD, "capacitor_charging", "Status", "ZMM Charging / Not Ready"),
        (OLD, "zmm_not_installed", "Status", "ZMM not installed"),
        (BATTERY, "battery_failed", "Status", "Failed"),
        (BATTERY, "learn_cycle", "Status", "Maintenance mode"),
        (BATTERY, "capacitor_charging", "Status", "Charging"),
        (CONTAINER, "battery_failed", "Supercap Status", "Fatal"),
        (CONTAINER, "learn_cycle", "Learn Status", "Active"),
        (CONTAINER, "zmm_not_installed", "Overall Backup Unit Status", "Not Present"),
        (SMART, "battery_failed", "Backup Power Status", "Failed (Replace Batteries/Capacitors)"),
        (SMART, "learn_cycle", "Backup Power Status", "Recharging"),
        (SMART, "capacitor_charging", "Backup Power Status", "Not Fully Charged"),
    ],
)
def test_protection_unit_status(model, fault, label, said):
    tool = arcconf(model)
    assert said not in values(tool, label, "GETCONFIG 1 AD")
    tool.state["faults"][fault] = True
    assert values(tool, label, "GETCONFIG 1 AD") == [said]


def test_unprotected_writeback_prompts_for_confirmation():
    tool = arcconf(CONTAINER)
    tool.state["faults"]["battery_failed"] = True
    words = "SETCACHE 1 LOGICALDRIVE 0 wb"
    refused(
        tool, words, "WARNING: Power failure without battery/ZMM support will lead to data loss.\nDo you wish to continue?\nPress y, then ENTER to continue"
    )
    assert run(tool, f"{words} noprompt").rc == 0
    tool.state["faults"].clear()
    done(tool, "SETCACHE 1 LOGICALDRIVE 0 wt")
    done(tool, words)


def test_device_requires_reported_address_and_per_drive_policy():
    tool = arcconf(CONTAINER)
    assert re.search(r"Device #1\n(.*\n)*?.*Reported Channel,Device\(T:L\) +: 0,9\(9:0\)", done(tool, "GETCONFIG 1 PD"))
    done(tool, "SETCACHE 1 DEVICE 0 9 wt nologs")
    assert values(tool, "Write Cache", "GETCONFIG 1 PD 0 8 0 9") == ["Enabled (write-back)", "Disabled (write-through)"]
    refused(tool, "SETCACHE 1 DEVICE 0 9 wt", "Write Cache mode is already set to")
    refused(tool, "SETCACHE 1 DEVICE 0 1 wt", "does not exist")
    done(tool, "SETCACHE 1 DEVICEALL disable noprompt")
    assert set(values(tool, "Write Cache", "GETCONFIG 1 PD")) == {"Disabled (write-through)"}
    refused(
        tool,
        "SETCACHE 1 DEVICE 0 8 wb",
        "Please modify the controller Global Physical Devices Cache policy to Drivespecific for updating the write cache on a specific drive",
    )
    refused(tool, "SETCACHE 1 DEVICEALL disable noprompt", "Controller Global Physical Devices Cache policy is already Disabled")
    refused(tool, "SETCACHE 1 DEVICEALL drivespecific", "The Cache mode will be set to Drive-specific.")
    done(tool, "SETCACHE 1 DEVICEALL drivespecific noprompt")
    assert values(tool, "Global Physical Device Write Cache Policy") == ["Drive Specific"]
    done(tool, "SETCACHE 1 DEVICE 0 8 wb")


def test_device_on_series_6():
    tool = arcconf(OLD)
    refused(tool, "SETCACHE 1 DEVICE 0 0 wb", "New write cache mode is the same as the old write cache mode.")
    done(tool, "SETCACHE 1 DEVICE 0 0 wt")
    refused(tool, "SETCACHE 1 DEVICEALL disable", "Controller #1 does not support setting global")


def test_drive_and_volume_errors():
    tool = arcconf(POOL, ssds=2)
    refused(tool, "SETCACHE 1 DEVICE 0 2 wt", "Disk specified cannot be used as it is assigned to MaxCache pool")
    tool.state["controllers"][0]["drives"][0]["supports_cache"] = False
    refused(tool, "SETCACHE 1 DEVICE 0 0 wt", "Write cache not supported on this device.")
    tool.state["controllers"][0]["drives"][1]["state"] = "Raw (Pass Through)"
    tool.state["controllers"][0]["drives"][1]["write_cache"] = "wt"
    refused(tool, "SETCACHE 1 DEVICE 0 1 wb", "Write-back caching is not supported on RAW devices.")
    tool.state["controllers"][0]["volumes"][0]["status"] = "Failed"
    refused(tool, "SETCACHE 1 LOGICALDRIVE 0 wt", "logical device 0 is in failed state. Cache settings cannot be changed for offline/failed array.")
    refused(tool, "SETCACHE 1 LOGICALDRIVE 7 wt", "does not exist")


def test_refused_policy_is_acknowledged_with_success():
    for model, words in (
        (CONTAINER, "SETCACHE 1 LOGICALDRIVE 0 wt"),
        (SMART, "SETCACHE 1 LOGICALDRIVE 0 coff"),
        (CONTAINER, "SETMAXCACHE 1 FLUSHANDFETCHRATE 7"),
    ):
        tool = arcconf(model)
        tool.state["faults"]["refused_policy"] = True
        before = copy.deepcopy(tool.state)
        done(tool, words)
        assert tool.state == before


@pytest.mark.parametrize("model", [OLD, CONTAINER, SMART])
def test_drive_cache_line_can_be_missing(model):
    tool = arcconf(model)
    tool.state["faults"]["drive_write_cache_unknown"] = True
    assert values(tool, "Write Cache", "GETCONFIG 1 PD") == []
    tool.state["faults"]["drive_write_cache_unknown"] = "unknown"
    assert set(values(tool, "Write Cache", "GETCONFIG 1 PD")) == {"Unknown"}


# --------------------------------------------------------------------------------------------------------------- SmartRAID


def test_controller_cache_of_smartraid():
    tool = arcconf(SMART, volumes=2)
    assert values(tool, "Cache Status") == ["Ok"]
    refused(tool, "SETCACHE 1 LOGICALDRIVE 1 con", "Cache mode is already set to Enabled.")
    done(tool, "SETCACHE 1 LOGICALDRIVE 1 coff")
    assert values(tool, "Caching") == ["Enabled", "Disabled"]
    assert values(tool, "LD Acceleration Method") == ["Controller Cache", "None"]
    done(tool, "SETCACHE 1 LOGICALDRIVE 0 coff noprompt")
    assert values(tool, "Caching") == ["Disabled", "Disabled"]
    assert values(tool, "Cache Status") == ["Not Configured"]
    assert (values(tool, "Read Cache Percentage"), values(tool, "Write Cache Percentage")) == (["Not Applicable"], ["Not Applicable"])
    refused(tool, "SETCACHE 1 CACHERATIO 25 75", "the controller cache is not configured")
    done(tool, "SETCACHE 1 LOGICALDRIVE 0 con")
    assert (values(tool, "Read Cache Percentage"), values(tool, "Write Cache Percentage")) == (["10 percent"], ["90 percent"])
    done(tool, "SETCACHE 1 CACHERATIO 25 75 nologs")
    assert values(tool, "Write Cache Percentage") == ["75 percent"]
    refused(tool, "SETCACHE 1 CACHERATIO 25 75", "Cache Ratio is already set to 25 % Read : 75 % Write.")


def test_temporarily_disabled_cache_keeps_caching_enabled():
    tool = arcconf(SMART)
    for fault in ("battery_failed", "capacitor_charging", "learn_cycle"):
        tool.state["faults"] = {fault: True}
        assert values(tool, "Cache Status") == ["Temporarily Disabled"]
        assert values(tool, "Cache State Details")[0].startswith("Temporarily Disabled(Reason: ")
        assert values(tool, "Caching") == ["Enabled"]
    tool.state["faults"] = {"cache_permanently_disabled": True}
    assert values(tool, "Cache Status") == ["Permanently Disabled"]
    tool.state["faults"] = {}
    assert (values(tool, "Cache Status"), values(tool, "Cache State Details")) == (["Ok"], [])


def test_no_battery_write_cache():
    tool = arcconf(SMART, caching=False)
    tool.state["faults"]["battery_failed"] = True
    sentence = "The specified operation cannot be performed as battery status is not Ok and No Battery Write Cache is disabled."
    refused(tool, "SETCACHE 1 LOGICALDRIVE 0 con", sentence)
    refused(tool, "SETCACHE 1 NOBATTERYWRITECACHE enable", "Press y, then ENTER")
    done(tool, "SETCACHE 1 NOBATTERYWRITECACHE enable noprompt")
    refused(tool, "SETCACHE 1 NOBATTERYWRITECACHE enable noprompt", "No Battery Write Cache is already set to")
    done(tool, "SETCACHE 1 LOGICALDRIVE 0 con")
    assert values(tool, "Cache Status") == ["Ok"]


def test_drive_write_cache_policies():
    tool = arcconf(SMART)
    assert values(tool, "Write Cache", "GETCONFIG 1 PD") == ["Disabled (write-through)"] * 2 + ["Enabled (write-back)"] * 2
    words = "SETCACHE 1 DRIVEWRITECACHEPOLICY Configured 1 unconfigured 2"
    refused(tool, words, "Data loss can happen on power outage if write-back caching is enabled on a drive.")
    done(tool, f"{words} noprompt nologs")
    assert [values(tool, f"{kind} Drives") for kind in ("Configured", "Unconfigured", "HBA")] == [["Enabled"], ["Disabled"], ["Default"]]
    assert values(tool, "Write Cache", "GETCONFIG 1 PD") == ["Enabled (write-back)"] * 2 + ["Disabled (write-through)"] * 2
    refused(tool, f"{words} noprompt", "Drive write cache already in desired mode.")
    done(tool, "SETCACHE 1 DRIVEWRITECACHEPOLICY Configured 3")
    assert values(tool, "Configured Drives") == ["Unchanged"]
    assert values(tool, "Write Cache", "GETCONFIG 1 PD")[:2] == ["Enabled (write-back)"] * 2


def test_io_bypass_conflicts_with_caching():
    tool = arcconf(SMART, caching=False)
    tool.state["controllers"][0]["volumes"][0]["ssd_bypass"] = True
    refused(tool, "SETCACHE 1 LOGICALDRIVE 0 con", "The specified operation cannot be performed as SSD I/O bypass has been enabled on array 0.")


def test_hba_mode():
    tool = arcconf(SMART)
    tool.state["faults"]["hba_mode"] = True
    assert values(tool, "Controller Mode") == ["HBA"]
    assert set(values(tool, "State", "GETCONFIG 1 PD")) == {"Raw (Pass Through)"}
    refused(tool, "SETCACHE 1 LOGICALDRIVE 0 coff", "All connectors are in HBA mode, Set cache operation is invalid.")
    refused(tool, "GETCONFIG 1 LD", "The requested feature is not supported on this controller.")
    done(tool, "SETCACHE 1 DRIVEWRITECACHEPOLICY HBA 2 noprompt")
    assert set(values(tool, "Write Cache", "GETCONFIG 1 PD")) == {"Disabled (write-through)"}
    tool.state["faults"].clear()
    assert values(tool, "Caching") == ["Enabled"]


def test_hba_card():
    tool = arcconf(HBA)
    refused(tool, "SETCACHE 1 LOGICALDRIVE 0 con", "The requested feature is not supported on this controller.")
    done(tool, "SETCACHE 1 DEVICE 0 1 wt noprompt")
    assert values(tool, "Write Cache", "GETCONFIG 1 PD 0 1") == ["Disabled (write-through)"]
    done(tool, "SETCACHE 1 DEVICEALL disable noprompt")
    assert set(values(tool, "Write Cache")) == {"Disabled (write-through)"}


# ---------------------------------------------------------------------------------------------------------------- maxCache


def test_maxcache_container_is_created_used_flushed_and_deleted():
    tool = arcconf(CONTAINER, volumes=2, maxcache=False)
    assert "No maxCache 3.0 found" in done(tool, "GETCONFIG 1 MC")
    refused(tool, "SETMAXCACHE 1 LOGICALDRIVE 0 READCACHE ENABLE", "No maxCache device created")
    refused(tool, "CREATE 1 MAXCACHE MAX 1 0 8 0 9 noprompt", "Only SSDs")
    refused(tool, "CREATE 1 MAXCACHE MAX 1 0 12 0 13", "Press y")
    done(tool, "CREATE 1 MAXCACHE MAX 1 0 12 0 13 noprompt")
    refused(tool, "CREATE 1 MAXCACHE MAX 1 0 12 0 13 noprompt", "")
    done(tool, "SETMAXCACHE 1 LOGICALDRIVE 0 1 READCACHE ENABLE nologs")
    done(tool, "SETMAXCACHE 1 LOGICALDRIVE 1 WRITECACHE ENABLE MAXCACHEWRITEPOLICY INSTWB")
    assert values(tool, "maxCache read cache status") == ["On", "On"]
    assert values(tool, "maxCache write cache policy") == ["Instant Write Back"]
    assert values(tool, "maxCache Status") == ["Dirty"]
    assert values(tool, "MaxCache Dirty Status", "GETCONFIG 1 MC") == ["Dirty"]
    refused(tool, "DELETE 1 MAXCACHE", "Please wait for the flushing to complete")
    done(tool, "SETMAXCACHE 1 LOGICALDRIVE 1 WRITECACHE DISABLE")
    assert [values(tool, "maxCache Status")[0] for _turn in range(5)] == ["Dirty", "Dirty", "Dirty", "Clean", "Clean"]
    done(tool, "DELETE 1 MAXCACHE")
    assert "No maxCache 3.0 found" in done(tool, "GETCONFIG 1 MC")
    assert values(tool, "maxCache read cache setting") == ["Disabled", "Disabled"]


def test_flush_takes_the_configured_number_of_readings_after_policy_change():
    tool = arcconf(CONTAINER)
    tool.state["controllers"][0]["flush_reads"] = 1
    done(tool, "SETMAXCACHE 1 LOGICALDRIVE 0 WRITECACHE ENABLE")
    done(tool, "SETMAXCACHE 1 LOGICALDRIVE 0 MAXCACHEWRITEPOLICY WT")
    refused(tool, "DELETE 1 MAXCACHE", "Please wait for the flushing to complete")
    assert [values(tool, "maxCache Status")[0] for _turn in range(2)] == ["Dirty", "Clean"]
    done(tool, "SETMAXCACHE 1 LOGICALDRIVE 0 MAXCACHEWRITEPOLICY WB")
    assert values(tool, "maxCache Status") == ["Dirty"]


def test_maxcache_numbers():
    tool = arcconf(CONTAINER)
    done(tool, "SETMAXCACHE 1 FLUSHANDFETCHRATE 200")
    done(tool, "SETMAXCACHE 1 RWBALANCE 5 5")
    done(tool, "SETMAXCACHE 1 DIRTYPAGETHRESHOLD 40")
    assert values(tool, "maxCache flush and fetch rate") == ["200"]
    assert values(tool, "maxCache Read, Write Balance Factor") == ["5,5"]
    assert values(tool, "maxCache Dirty Page Threshold") == ["40"]


def test_write_cache_is_refused_on_single_ssd():
    tool = arcconf(CONTAINER, ssds=1)
    refused(tool, "SETMAXCACHE 1 LOGICALDRIVE 0 WRITECACHE ENABLE", "non-redundant")
    done(tool, "SETMAXCACHE 1 LOGICALDRIVE 0 READCACHE ENABLE")


def test_maxcache_pool():
    tool = arcconf(POOL, ssds=2, maxcache=False)
    refused(tool, "SETMAXCACHE 1 LOGICALDRIVE 0 READCACHE ENABLE", "No maxCache device created")
    done(tool, "SETMAXCACHE 1 ADDTOPOOL 0 2 0 3")
    assert values(tool, "SSDs assigned to maxCache pool") == ["2"]
    assert values(tool, "maxCache Assigned") == ["No", "No", "Yes", "Yes"]
    done(tool, "SETMAXCACHE 1 LOGICALDRIVE 0 READCACHE ENABLE")
    refused(tool, "SETMAXCACHE 1 LOGICALDRIVE 0 WRITECACHE ENABLE", "not supported")
    tool.state["controllers"][0]["maxcache"]["write_feature"] = True
    done(tool, "SETMAXCACHE 1 LOGICALDRIVE 0 WRITECACHE ENABLE")
    done(tool, "SETMAXCACHE 1 LOGICALDRIVE 0 WRITECACHE DISABLE")
    for _reading in range(3):
        refused(tool, "SETMAXCACHE 1 REMOVEFROMPOOL 0 2", "Please wait for the flushing to complete")
        done(tool, "GETCONFIG 1")
    done(tool, "SETMAXCACHE 1 REMOVEFROMPOOL 0 2")
    assert values(tool, "SSDs assigned to maxCache pool") == ["1"]
    refused(arcconf(SERIES7), "SETMAXCACHE 1 ADDTOPOOL 0 2", "The requested feature is not supported on this controller.")


def test_maxcache_of_smartraid():
    tool = arcconf(SMART, volumes=2)
    words = "CREATE 1 MAXCACHE Wcache WB CacheLineSize 256 DataLD 0 20480 1 0 12 0 13 noprompt"
    assert "No maxCache Array found" in done(tool, "GETCONFIG 1 MC")
    refused(tool, words, "Controller cache is enabled on the logical drive")
    done(tool, "SETCACHE 1 LOGICALDRIVE 0 coff")
    tool.state["faults"]["capacitor_charging"] = True
    refused(tool, words, "battery status is not Ok")
    tool.state["faults"].clear()
    refused(tool, words.replace("20480", "1024"), "16 GB")
    refused(tool, words.replace("0 12 0 13", "0 8 0 9"), "Only SSDs")
    done(tool, words)
    assert values(tool, "LD Acceleration Method") == ["maxCache", "Controller Cache"]
    assert values(tool, "Associated Logical Device ID") == ["0"]
    assert values(tool, "Cache Line Size") == ["256 KB"]
    refused(tool, "SETCACHE 1 LOGICALDRIVE 0 con", "maxCache is enabled on the logical drive, controller cache cannot be modified.")
    refused(tool, words, "")
    refused(tool, "DELETE 1 MAXCACHE 2 noprompt", "Please wait for the flushing to complete")
    done(tool, "SETMAXCACHE 1 LOGICALDRIVE 0 MAXCACHEWRITEPOLICY WT nologs")
    assert [values(tool, "maxCache state", "GETCONFIG 1 MC")[0] for _turn in range(4)] == ["Dirty", "Dirty", "Dirty", "Clean"]
    done(tool, "DELETE 1 MAXCACHE 2 noprompt")
    assert "No maxCache Array found" in done(tool, "GETCONFIG 1 MC")
    done(tool, "SETCACHE 1 LOGICALDRIVE 0 con")


# --------------------------------------------------------------------------------------------------------------- everything


def test_collection_parser_reads_maxcache_volume_of_smartraid():
    tool = arcconf(SMART)
    done(tool, "SETCACHE 1 LOGICALDRIVE 0 coff")
    done(tool, "CREATE 1 MAXCACHE DataLD 0 65536 1 0 10 0 11 noprompt")
    reading = parse(done(tool, "GETCONFIG 1 AL"))
    (controller,) = reading.controllers
    assert reading.not_understood == ()
    assert controller.maxcache is not None
    assert [(one.id, one.data_volume, one.dirty, one.raid_level, one.members) for one in controller.maxcache.volumes] == [
        ("1", "0", "dirty", "1", ("0,10", "0,11"))
    ]


def test_green_backup_matches_published_output():
    """The labels and words of a card whose capacitor is charging, in their order; the output is public but not in the corpus."""
    tool = arcconf("Cisco UCSC-RAID-M1L16")
    tool.state["faults"]["capacitor_charging"] = True
    lines = done(tool, "GETCONFIG 1 AD").splitlines()
    start = lines.index("   Cache Status                               : Temporarily Disabled")
    assert lines[start : start + 3] == [
        "   Cache Status                               : Temporarily Disabled",
        "   Cache State                                : Disabled Flashlight Capacitor Charge Is Low",
        "   Cache State Details                        : Temporarily Disabled(Reason: Charge level of capacitor attached to cache module is low)",
    ]
    start = lines.index("   Green Backup Information".ljust(46))
    labels = "Backup Power Status/Battery+Capacitor Pack Count/Hardware Error/Power Type/Current Temperature/Maximum Temperature/Threshold Temperature/Voltage"
    labels += "/Maximum Voltage/Current/Health Status/Relative Charge"
    assert [line.partition(":")[0].strip() for line in lines[start + 2 : start + 14]] == [label.replace("+", "/") for label in labels.split("/")]
    assert lines[start + 2] == "   Backup Power Status                        : Not Fully Charged"
