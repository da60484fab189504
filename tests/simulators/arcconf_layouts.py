# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which labels a build of arcconf prints, in which order and spelling: the labels changed with nearly every build.

A template is text, one entry per line: ``Label`` (its value comes from the state), ``Label = value`` (the value that the state
does not change), ``[Title]`` (a title between rules), ``<name>`` (a part that a function prints, see ``arcconf_text``).
The labels and their order were read from captured outputs; where a layout has no capture, its comment says so.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass


@dataclass(frozen=True)
class Layout:
    """How one build of the tool prints one family of cards.

    :param column: where the colon of adapter and volume lines stands.
    :param rule: length of the rules inside the adapter section.
    :param words: ``mode``: ``Read-cache mode``, ``Write-cache mode``; ``status``: ``Read-cache status``, ``Write-cache status``; ``smart``.
    :param capital: whether it says ``Logical Device`` (else ``Logical device``).
    :param segments: how a member is written: ``place`` (Controller:1,…), ``size`` (…MB, SATA, HDD, …), ``address`` (0,1).
    :param padded_serials: serial numbers as ATA drives give them, right-justified in 20 characters.
    :param padded_titles: titles inside the section of drives (and of a SmartRAID adapter) filled with blanks to the column.
    :param drives_tail: blank lines after the last drive.
    :param grammar: which usage texts and words the build knows (``arcconf_usage``).
    """

    adapter: str
    volume: str
    drive: str
    enclosure: str
    column: int = 44
    rule: int = 56
    words: str = "status"
    capital: bool = False
    segments: str = "place"
    padded_serials: bool = False
    padded_titles: bool = False
    padded_adapter_titles: bool = False
    drives_tail: int = 1
    shows_channels: bool = False
    device_details: tuple[str, ...] = ()
    connectors: str = "none"
    smart: bool = False
    extra_volume_sections: bool = False
    grammar: str = "aacraid"
    firmware_versions: tuple[str, ...] = ("Firmware", "Staged Firmware", "BIOS", "Driver", "Boot Flash")


_VERSIONS = """
[Controller Version Information]
BIOS
Firmware
Driver
Boot Flash
"""

_BIOS_SETTINGS = """
[Controller BIOS Setting Information]
Runtime BIOS = Enabled
Array BBS Support = {bbs}
Physical Drives Displayed during POST = {post}
Backplane Mode = {backplane}
BIOS Halt on Missing Drive Count = 255
"""

_ENCLOSURE = """
Reported Channel,Device(T:L)
Enclosure ID
Type = SES2
Vendor
Model
Firmware
"""

_SERIES6_OLD_ADAPTER = (
    """
Controller Status
Channel description = SAS/SATA
Controller Model
Controller Serial Number
Physical Slot
Temperature = 47 C/ 116 F (Normal)
Installed memory = 512 MB
Copyback = Disabled
Background consistency check = Disabled
Automatic Failover = Enabled
Global task priority = High
Performance Mode = Default/Dynamic
Stayawake period = Disabled
Spinup limit internal drives = 0
Spinup limit external drives = 0
Defunct disk drive count = 0
Logical devices/Failed/Degraded
NCQ status = Enabled
Statistics data collection mode = Enabled
"""
    + _VERSIONS
    + "<protection>"
)

_SERIES6_OLD_VOLUME = """
Logical device name
RAID level
Status of logical device
Size
Stripe-unit size
Read-cache mode
Write-cache mode
Write-cache setting
Partitioned = No
Protected by Hot-Spare = No
Bootable
Failed stripes = No
Power settings = Disabled
"""

_SERIES6_VOLUME = """
Logical device name
RAID level
Status of logical device
Size
Stripe-unit size
Read-cache setting
Read-cache status
Write-cache setting
Write-cache status
Partitioned = Yes
Protected by Hot-Spare = No
Bootable
Failed stripes = No
Power settings = Disabled
"""

_SERIES6_OLD_DRIVE = """
State
Supported = Yes
Transfer Speed
Reported Channel,Device(T:L)
Reported Location
Vendor
Model
Firmware
Serial number
Size
Write Cache
FRU = None
S.M.A.R.T. = No
S.M.A.R.T. warnings = 0
Power State = Full rpm
Supported Power States = Full rpm,Powered off
NCQ status
"""

_SIZES = """
Reserved Size
Used Size
Unused Size
Total Size
Write Cache
FRU = None
S.M.A.R.T. = No
S.M.A.R.T. warnings = 0
Power State = Full rpm
Supported Power States = Full rpm,Powered off{reduced}
SSD
"""

_SERIES6_DRIVE = (
    """
State
Supported = Yes
Transfer Speed
Reported Channel,Device(T:L)
Reported Location
Reported ESD(T:L)
Vendor
Model
Firmware
Serial number
World-wide name
"""
    + _SIZES.format(reduced=",Reduced rpm")
    + "NCQ status"
)

_POOL_ADAPTER = (
    """
Controller Status
Channel description = SAS/SATA
Controller Model
Controller Serial Number
Controller World Wide Name
Controller Alarm = Enabled
Physical Slot
Temperature = 35 C/ 95 F (Normal)
Installed memory = 512 MB
Global task priority = High
Performance Mode = Default/Dynamic
Host bus type = PCIe
Host bus speed = 5000 MHz
Host bus link width = 4 bit(s)/link(s)
Stayawake period = Disabled
Spinup limit internal drives = 0
Spinup limit external drives = 0
Defunct disk drive count = 0
Logical devices/Failed/Degraded
NCQ status = Enabled
Statistics data collection mode = Enabled
[RAID Properties]
Copyback = Enabled
Background consistency check = Enabled
Background consistency check period = 30
Automatic Failover = Enabled
SSDs assigned to maxCache pool
Maximum SSDs allowed in maxCache pool = 8
maxCache Read Cache Pool Size
maxCache flush and fetch rate
maxCache Read, Write Balance Factor
"""
    + _VERSIONS
    + "<protection>"
)

# The lines about writing appear on this generation only after MAXCACHEWRITECACHE on; no capture has them.
_POOL_VOLUME = """
Logical device name
Block Size of member drives
RAID level
Unique Identifier
Status of logical device
Additional details = Initialized with Build/Clear
maxCache Status
Size
Parity space
Stripe-unit size
Read-cache setting
Read-cache status
Write-cache setting
Write-cache status
maxCache read cache setting
maxCache read cache status
maxCache write cache setting
maxCache write cache status
maxCache write cache policy
Partitioned = No
Protected by Hot-Spare = No
Bootable
Failed stripes = No
Power settings = Disabled
"""

_POOL_DRIVE = (
    """
State
Block Size
Supported = Yes
Transfer Speed
Reported Channel,Device(T:L)
Reported Location
Vendor
Model
Firmware
Serial number
World-wide name
"""
    + _SIZES.format(reduced="")
    + """
maxCache Capable
maxCache Assigned
Temperature = Not Supported
NCQ status
"""
)

_SERIES6_NEW_ADAPTER = (
    """
Controller Status
Channel description = SAS/SATA
Controller Model
Controller Serial Number
Controller World Wide Name
Controller Alarm = Enabled
Physical Slot
Temperature = 40 C/ 104 F (Normal)
Installed memory = 512 MB
Host bus type = PCIe
Host bus speed = 5000 MHz
Host bus link width = 8 bit(s)/link(s)
Global task priority = High
Performance Mode = Default/Dynamic
PCI Device ID = 651
Stayawake period = Disabled
Spinup limit internal drives = 0
Spinup limit external drives = 0
Defunct disk drive count = 0
NCQ status = Enabled
Statistics data collection mode = Enabled
[Cache Properties]
[RAID Properties]
Logical devices/Failed/Degraded
Copyback = Disabled
Automatic Failover = Enabled
Background consistency check = Disabled
Background consistency check period = 30
"""
    + _VERSIONS
    + "<protection>\n<connectors>"
)

_CURRENT_VOLUME = """
Logical Device name
Disk Name
Block Size of member drives
RAID level
Unique Identifier
Status of Logical Device
Additional details = Initialized with Build/Clear
{maxcache_status}
Size
Parity space
Stripe-unit size
Interface Type
Device Type
Read-cache setting
Read-cache status
Write-cache setting
Write-cache status
{maxcache}
Partitioned = Yes
Protected by Hot-Spare = No
Bootable
Failed stripes = No
Power settings = Disabled
"""

_SERIES6_NEW_DRIVE = (
    """
State
Block Size
Supported = Yes
Transfer Speed
Reported Channel,Device(T:L)
Reported Location
Vendor
Model
Firmware
Serial number
World-wide name
"""
    + _SIZES.format(reduced=",Reduced rpm")
    + """
Temperature = 30 C/ 86 F
NCQ status
"""
)

_SERIES7_MAXCACHE_ADAPTER = (
    """
Controller Status
Controller Mode
Channel description = SAS/SATA
Controller Model
Controller Serial Number
Physical Slot
Temperature = 60 C/ 140 F (Normal)
Installed memory = 1024 MB
Copyback = Disabled
Background consistency check = Disabled
Automatic Failover = Enabled
Global task priority = High
Performance Mode = Default/Dynamic
Host bus type = PCIe
Host bus speed = 8000 MHz
Hot bus link width = 8 bit(s)/link(s)
Stayawake period = Disabled
Spinup limit internal drives = 0
Spinup limit external drives = 0
Defunct disk drive count = 0
Logical devices/Failed/Degraded
MaxCache flush and fetch rate
MaxCache Read, Write Balance Factor
MaxCache Dirty Page Threshold
NCQ status = Enabled
Statistics data collection mode = Disabled
"""
    + _VERSIONS
    + "<blank>\n<protection>"
)

_MAXCACHE_LINES = """
MaxCache read cache setting
MaxCache read cache status
MaxCache write cache setting
MaxCache write cache status
MaxCache write cache policy
"""

_SERIES7_MAXCACHE_VOLUME = f"""
Logical device name
RAID level
Status of logical device
MaxCache Status
Size
Parity space
Stripe-unit size
Read-cache setting
Read-cache status
Write-cache setting
Write-cache status
{_MAXCACHE_LINES}
Partitioned = No
Protected by Hot-Spare = No
Bootable
Failed stripes = No
Power settings = Disabled
"""

_SERIES7_ADAPTER = (
    """
Controller Status
Controller Mode
Controller Cache Preservation = Disabled
Channel description = SAS/SATA
Controller Model
Controller Serial Number
Controller World Wide Name
Controller Alarm = Enabled
Physical Slot
Temperature = 54 C/ 129 F (Normal)
Installed memory = 1024 MB
Global task priority = Medium
Performance Mode = Default/Dynamic
Host bus type = PCIe
Host bus speed = 8000 MHz
Host bus link width = 8 bit(s)/link(s)
Stayawake period = Disabled
Spinup limit internal drives = 0
Spinup limit external drives = 0
Defunct disk drive count = 0
Logical devices/Failed/Degraded
NCQ status = Enabled
Statistics data collection mode = Disabled
Global Physical Device Write Cache Policy
Monitor Log Severity Level = Informational
[RAID Properties]
Copyback = Disabled
Background consistency check = Enabled
Background consistency check period = 0
Automatic Failover = Enabled
"""
    + _BIOS_SETTINGS.format(bbs="Enabled", post="Disabled", backplane="IBPI")
    + _VERSIONS
    + "<blank>\n<protection>"
)

_SERIES7_VOLUME = """
Logical device name
Disk Name
Block Size of member drives
RAID level
Unique Identifier
Status of logical device
Size
Parity space
Stripe-unit size
Read-cache setting
Read-cache status
Write-cache setting
Write-cache status
Partitioned = No
Protected by Hot-Spare = No
Bootable
Failed stripes = No
Power settings = Disabled
"""

_SERIES7_DRIVE = (
    """
State
Block Size
Supported = Yes
Transfer Speed
Reported Channel,Device(T:L)
Reported Location
Reported ESD(T:L)
Vendor
Model
Firmware
Serial number
World-wide name
"""
    + _SIZES.format(reduced="")
    + "NCQ status"
)

_SERIES8_ADAPTER = (
    """
Controller Status
Controller Mode
Controller Cache Preservation = Disabled
Channel description = SAS/SATA
Controller Model
Controller Serial Number
Controller World Wide Name
Controller Alarm = Enabled
Physical Slot
Temperature = 49 C/ 120 F (Normal)
Installed memory = 1024 MB
Global task priority = High
Performance Mode = Default/Dynamic
Host bus type = PCIe
Host bus speed = 8000 MHz
Host bus link width = 8 bit(s)/link(s)
PCI Device ID = 653
Stayawake period = Disabled
Spinup limit internal drives = 0
Spinup limit external drives = 0
Defunct disk drive count = 0
Logical devices/Failed/Degraded
{maxcache}
NCQ status = Enabled
Statistics data collection mode = Disabled
Global Physical Device Write Cache Policy
Monitor Log Severity Level = Informational
Global Max SAS Phy Link Rate = 12 Gbps
Verify Write Setting = Not Applicable
[RAID Properties]
Copyback = Disabled
Automatic Failover = Enabled
Background consistency check = Disabled
Background consistency check period = 0
Error Tunable Profile = Normal
"""
    + _BIOS_SETTINGS.format(bbs="Disabled", post="Enabled", backplane="SGPIO")
    + _VERSIONS
    + """
CPLD (Load version/ Flash version) = 8/ 11
SEEPROM (Load version/ Flash version) = 1/ 1
FCT Custom Init String Version = 0x0
<blank>
<protection>
"""
)

_SERIES8_DRIVE = (
    """
State
Block Size
Supported = Yes
Programmed Max Speed
Transfer Speed
Reported Channel,Device(T:L)
Reported Location
Reported ESD(T:L)
Vendor
Model
Firmware
Serial number
World-wide name
"""
    + _SIZES.format(reduced=",Reduced rpm")
    + """
Temperature = 35 C/ 95 F {blank}
NCQ status
"""
)

_BATTERY_ADAPTER = (
    """
Controller Status
Channel description = SAS/SATA
Controller Model
Controller Serial Number
Physical Slot
Installed memory = 256 MB
Copyback = Disabled
Background consistency check = Enabled
Automatic Failover = Enabled
Defunct disk drive count = 0
Logical devices/Failed/Degraded
"""
    + _VERSIONS
    + "<protection>"
)

_BATTERY_VOLUME = """
Logical device name
RAID level
Status of logical device
Size
Stripe-unit size
Read-cache mode
Write-cache mode
Write-cache setting
Partitioned = Unknown
Protected by Hot-Spare = No
Bootable
Failed stripes = No
"""

_BATTERY_DRIVE = """
State
Supported = Yes
Transfer Speed
Reported Channel,Device
Vendor
Model
Firmware
World-wide name
Size
Write Cache
FRU = None
S.M.A.R.T. = No
"""

_BATTERY_ENCLOSURE = """
Reported Channel,Device
Enclosure ID
Type = SES2
Vendor
Model
Firmware
"""

_SMART_ADAPTER = """
Controller Status
Controller Mode
Channel description = SCSI
Controller Model
Vendor ID = 0x9005
Device ID = 0x028F
Subsystem Vendor ID = 0x9005
Subsystem Device ID = 0x14A1
Controller Serial Number
Controller World Wide Name
Physical Slot
Temperature = 46 C/ 114 F (Normal)
Negotiated PCIe Data Rate = PCIe 3.0 x8(7880 MB/s)
PCI Address (Domain:Bus:Device:Function) = 0:60:0:0
Number of Ports
Internal Port Count
External Port Count = 0
Defunct disk drive count = 0
NCQ status = Enabled
Queue Depth
Monitor and Performance Delay
Elevator Sort
Degraded Mode Performance Optimization
Latency
Post Prompt Timeout = 0 seconds
Boot Controller = False
Primary Boot Volume = None
Secondary Boot Volume = None
Driver Name = smartpqi
Driver Supports SSD I/O Bypass = Yes
NVMe Supported = Yes
NVMe Configuration Supported = Yes
Manufacturing Part Number = Not Applicable
Manufacturing Spare Part Number = Not Applicable
Manufacturing Wellness Log = Not Applicable
Manufacturing SKU Number = Not Applicable
Manufacturing Model = Not Applicable
NVRAM Checksum Status = Passed
Sanitize Lock Setting = None
Expander Minimum Scan Duration = 0 seconds
Expander Scan Time-out = 350 seconds
Reboot Required Reasons
[Power Settings]
Power Consumption = 0 milliWatts {blank}
Current Power Mode = Maximum Performance
Pending Power Mode = Not Applicable
Survival Mode = Enabled
[Cache Properties]
Cache Status
Cache State
Cache State Details
Cache Serial Number = Not Applicable
Cache memory
Read Cache Percentage
Write Cache Percentage
No-Battery Write Cache
Wait for Cache Room
Write Cache Bypass Threshold Size
<protection>
[Physical Drive Write Cache Policy Information]
Configured Drives
Unconfigured Drives
HBA Drives
<maxcache properties>
[RAID Properties]
Logical devices/Failed/Degraded
Spare Activation Mode = Failure
Background consistency check
Consistency Check Delay
Parallel Consistency Check Supported
Parallel Consistency Check Count
Inconsistency Repair Policy
Consistency Check Inconsistency Notify
Rebuild Priority
Expand Priority = Medium
[Controller Version Information]
Firmware
Driver
Hardware Revision = B
Hardware Minor Revision = Not Available
SEEPROM Version = 0
[Temperature Sensors Information]
<sensors>
[Out Of Band Interface Settings]
OOB Interface = MCTP
Pending OOB Interface = MCTP
I2C Address = 0xDE
Pending I2C Address = 0xDE
[PBSI]
I2C Clock Speed = Not Applicable
I2C Clock Stretching = Not Applicable
Pending I2C Clock Speed = Not Applicable
Pending I2C Clock Stretching = Not Applicable
[MCTP]
SMBus Device Type = Fixed
SMBus Channel = Disabled
Static EIDs Use On Initialization = Disabled
VDM Notification = Enabled
Pending SMBus Device Type = Fixed
Pending SMBus Channel = Disabled
Pending Static EIDs Use On Initialization = Disabled
Pending VDM Notification = Enabled
<connectors>
"""

_SMART_VOLUME = """
Logical Device name
Disk Name
Block Size of member drives
Array
RAID level
Status of Logical Device
Parity Initialization Status
Size
Stripe-unit size
Full Stripe Size
Interface Type
Device Type = Data
Boot Type = None
Heads = 255
Sectors Per Track = 32
Cylinders = 65535
Caching
Mount Points = Not Mounted
LD Acceleration Method
{sed}
Volume Unique Identifier
"""

_SMART_DRIVE = """
State
Drive has stale RIS data = False
Disk Name
Block Size
Physical Block Size
Transfer Speed
Reported Channel,Device(T:L)
Reported Location
Array
Vendor
Model
Firmware
Serial number
World-wide name
Reserved Size = 32768 KB
Used Size
Unused Size
Total Size
Write Cache
S.M.A.R.T. = No
S.M.A.R.T. warnings = 0
SSD
NCQ supported
NCQ status
Boot Type = None
Rotational Speed
Current Temperature = 30 deg C
Maximum Temperature = 31 deg C
Threshold Temperature = 60 deg C
PHY Count
Drive Configuration Type
Mount Point(s)
Drive Exposed to OS
Sanitize Erase Support = True
Sanitize Lock Freeze Support = False
Sanitize Lock Anti-Freeze Support = False
Sanitize Lock Setting = None
Usage Remaining
Estimated Life Remaining
SSD Smart Trip Wearout
56 Day Warning Present
Drive Unique ID
{part_numbers}
Last Failure Reason = No Failure
"""

_SMART_ENCLOSURE = """
Reported Channel,Device(T:L)
Enclosure ID
Enclosure Logical Identifier
Type = SES2
Vendor
Model
Firmware
"""

_HBA_ADAPTER = """
Controller Status
Controller Mode
Channel description = SCSI
Controller Model
Controller Serial Number
Controller World Wide Name
Physical Slot
Temperature = 35 C/ 95 F (Normal)
Host bus type = PCIe 3.0
Host bus speed = 7880 MBps
Host bus link width = 8 bit(s)/link(s)
PCI Address (Bus:Device:Function) = 0:d9:0:0
Number of Ports
Internal Port Count
External Port Count = 0
NCQ status = Enabled
Post Prompt Timeout = 0 seconds
Boot Controller = False
Primary Boot Volume = None
Secondary Boot Volume = None
Driver Name = smartpqi
Manufacturing Part Number = Not Applicable
Manufacturing Spare Part Number = Not Applicable
Manufacturing Wellness Log = Not Applicable
NVRAM Checksum Status = Passed
Sanitize Lock Setting = None
[Power Settings]
Power Consumption = Not Available
Current Power Mode = Maximum Performance
Pending Power Mode = Not Applicable
Survival Mode = Enabled
[I2C Settings]
I2C Address = 0xDE
I2C Clock Speed = 400 KHZ
I2C Clock Stretching = Enabled
[Cache Properties]
[Controller Version Information]
Firmware
Driver
Hardware Revision = A
[Temperature Sensors Information]
<sensors>
<connectors>
"""

_PHY_AND_COUNTERS = ("smart phys", "smart counters")

LAYOUTS: t.Mapping[str, Layout] = {
    "series6 old": Layout(_SERIES6_OLD_ADAPTER, _SERIES6_OLD_VOLUME, _SERIES6_OLD_DRIVE, _ENCLOSURE, words="mode", padded_serials=True, grammar="series6"),
    "series6": Layout(_SERIES6_OLD_ADAPTER, _SERIES6_VOLUME, _SERIES6_DRIVE, _ENCLOSURE, padded_serials=True, drives_tail=2, grammar="series6"),
    "series6 new": Layout(
        _SERIES6_NEW_ADAPTER,
        _CURRENT_VOLUME.format(maxcache_status="", maxcache=""),
        _SERIES6_NEW_DRIVE,
        _ENCLOSURE,
        capital=True,
        segments="size",
        padded_titles=True,
        device_details=("phy",),
        connectors="in adapter, lanes",
        grammar="series6",
    ),
    "maxcache 2": Layout(_POOL_ADAPTER, _POOL_VOLUME, _POOL_DRIVE, _ENCLOSURE, padded_serials=True, drives_tail=2, grammar="series6 maxcache"),
    "maxcache 3": Layout(_SERIES7_MAXCACHE_ADAPTER, _SERIES7_MAXCACHE_VOLUME, _SERIES6_DRIVE, _ENCLOSURE, grammar="series7 maxcache"),
    "series7": Layout(_SERIES7_ADAPTER, _SERIES7_VOLUME, _SERIES7_DRIVE, _ENCLOSURE, padded_serials=True, drives_tail=2, grammar="series7"),
    "series8": Layout(
        _SERIES8_ADAPTER.format(maxcache=""),
        _CURRENT_VOLUME.format(maxcache_status="", maxcache=""),
        _SERIES8_DRIVE,
        _ENCLOSURE,
        capital=True,
        segments="size",
        padded_titles=True,
        drives_tail=2,
        device_details=("phy", "runtime counters"),
        connectors="section, lanes",
        grammar="series7",
    ),
    # No capture: the lines of series 8 with those of maxCache 3.0 of series 7 at the same places.
    "series8 maxcache": Layout(
        _SERIES8_ADAPTER.format(maxcache="maxCache flush and fetch rate\nmaxCache Read, Write Balance Factor\nmaxCache Dirty Page Threshold"),
        _CURRENT_VOLUME.format(maxcache_status="maxCache Status", maxcache=_MAXCACHE_LINES.replace("MaxCache", "maxCache")),
        _SERIES8_DRIVE,
        _ENCLOSURE,
        capital=True,
        segments="size",
        padded_titles=True,
        drives_tail=2,
        device_details=("phy", "runtime counters"),
        connectors="section, lanes",
        grammar="series7 maxcache",
    ),
    "battery": Layout(_BATTERY_ADAPTER, _BATTERY_VOLUME, _BATTERY_DRIVE, _BATTERY_ENCLOSURE, words="mode", segments="address", grammar="series6"),
    "smart": Layout(
        _SMART_ADAPTER,
        _SMART_VOLUME.format(sed=""),
        _SMART_DRIVE.format(part_numbers="Drive SKU Number = Not Applicable\nDrive Part Number = Not Applicable"),
        _SMART_ENCLOSURE,
        column=46,
        rule=67,
        words="smart",
        capital=True,
        segments="size",
        padded_titles=True,
        padded_adapter_titles=True,
        shows_channels=True,
        device_details=_PHY_AND_COUNTERS,
        connectors="in adapter, named",
        smart=True,
        grammar="smart",
        firmware_versions=("Firmware", "Driver", "SEEPROM Version"),
    ),
    "smart cisco": Layout(
        _SMART_ADAPTER,
        _SMART_VOLUME.format(sed="SED Encryption = Disabled"),
        _SMART_DRIVE.format(part_numbers="Drive SKU Number = Not Applicable\nDrive Part Number = Not Applicable"),
        _SMART_ENCLOSURE,
        column=46,
        rule=67,
        words="smart",
        capital=True,
        segments="size",
        padded_titles=True,
        padded_adapter_titles=True,
        shows_channels=True,
        device_details=_PHY_AND_COUNTERS,
        connectors="in adapter, named",
        smart=True,
        extra_volume_sections=True,
        grammar="smart",
        firmware_versions=("Firmware", "Driver", "SEEPROM Version"),
    ),
    "hba": Layout(
        _HBA_ADAPTER,
        _SMART_VOLUME.format(sed=""),
        _SMART_DRIVE.format(part_numbers="").replace("Freeze Support = False", "Freeze Support = True"),
        _SMART_ENCLOSURE,
        words="smart",
        capital=True,
        segments="size",
        padded_titles=True,
        shows_channels=True,
        device_details=_PHY_AND_COUNTERS,
        connectors="section, named",
        smart=True,
        grammar="hba",
        firmware_versions=("Firmware", "Driver"),
    ),
}
