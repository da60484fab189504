# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Templates of the aacraid generation (series 3 to 8) for arcconf_layouts, which says how to read them."""

from __future__ import annotations

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

ENCLOSURE = """
Reported Channel,Device(T:L)
Enclosure ID
Type = SES2
Vendor
Model
Firmware
"""

SERIES6_OLD_ADAPTER = (
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

SERIES6_OLD_VOLUME = """
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

SERIES6_VOLUME = """
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

SERIES6_OLD_DRIVE = """
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

SERIES6_DRIVE = (
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

POOL_ADAPTER = (
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
POOL_VOLUME = """
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

POOL_DRIVE = (
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

SERIES6_NEW_ADAPTER = (
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

CURRENT_VOLUME = """
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

SERIES6_NEW_DRIVE = (
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

SERIES7_MAXCACHE_ADAPTER = (
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

MAXCACHE_LINES = """
MaxCache read cache setting
MaxCache read cache status
MaxCache write cache setting
MaxCache write cache status
MaxCache write cache policy
"""

SERIES7_MAXCACHE_VOLUME = f"""
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
{MAXCACHE_LINES}
Partitioned = No
Protected by Hot-Spare = No
Bootable
Failed stripes = No
Power settings = Disabled
"""

SERIES7_ADAPTER = (
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

SERIES7_VOLUME = """
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

SERIES7_DRIVE = (
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

SERIES8_ADAPTER = (
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

#: Builds 2.x and 3.x on series 7 and 8: what is set for all drives is below the heading of the cache.
SERIES8_NEW_ADAPTER = (
    """
Controller Status
Controller Mode
Channel description = SAS/SATA
Controller Model
Controller Serial Number
Controller World Wide Name
Controller Alarm = Enabled
Physical Slot
Temperature = 49 C/ 120 F (Normal)
Installed memory = 1024 MB
Host bus type = PCIe
Host bus speed = 8000 MHz
Host bus link width = 8 bit(s)/link(s)
Global task priority = High
Performance Mode = Default/Dynamic
PCI Device ID = 653
Stayawake period = Disabled
Spinup limit internal drives = 0
Spinup limit external drives = 0
Defunct disk drive count = 0
NCQ status = Enabled
Statistics data collection mode = Disabled
Monitor Log Severity Level = Informational
Global Max SAS Phy Link Rate = 12 Gbps
Verify Write Setting = Not Applicable
Error Tunable Profile = Normal
[Cache Properties]
Controller Cache Preservation = Disabled
Global Physical Device Write Cache Policy
[RAID Properties]
Logical devices/Failed/Degraded
Copyback = Disabled
Automatic Failover = Enabled
Background consistency check = Disabled
Background consistency check period = 0
"""
    + _BIOS_SETTINGS.format(bbs="Enabled", post="Disabled", backplane="IBPI")
    + _VERSIONS
    + """
CPLD (Load version/ Flash version) = 8/ 11
SEEPROM (Load version/ Flash version) = 1/ 1
FCT Custom Init String Version = 0x0
<blank>
<protection>
<connectors>
"""
)

SERIES8_DRIVE = (
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

BATTERY_ADAPTER = (
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

BATTERY_VOLUME = """
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

BATTERY_DRIVE = """
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

BATTERY_ENCLOSURE = """
Reported Channel,Device
Enclosure ID
Type = SES2
Vendor
Model
Firmware
"""
