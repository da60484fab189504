# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Templates of SmartRAID cards and HBAs for arcconf_layouts, which says how to read them."""

from __future__ import annotations

SMART_ADAPTER = """
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

# A newer build on a server maker's card: more lines and sections, one of them with a column of its own.
CISCO_ADAPTER = (
    SMART_ADAPTER.replace(
        "Reboot Required Reasons",
        """Active PCIe Maximum Read Request Size = 2048 bytes
Pending PCIe Maximum Read Request Size = Not Applicable
PCIe Maximum Payload Size = 512 bytes
Persistent Event Log Policy = Oldest
UEFI Health Reporting Mode = Enabled
Reboot Required Reasons""",
    )
    .replace(
        "[Temperature Sensors Information]",
        """CPLD Revision = 1
[SED Encryption Properties]
SED Encryption = Off
Key Mode = None
SED Encryption Status = Not Applicable
SED Operation In Progress = Not Applicable
Master Key Identifier = Not Applicable
SED Controller Password Status = Not Configured
Countdown Timer = Not Applicable
Attempts Left = Not Applicable
[Controller maxCrypto Information]
<maxcrypto>
[Temperature Sensors Information]""",
    )
    .replace("Hardware Minor Revision = Not Available", "Hardware Minor Revision = 1")
)

#: In a column of their own.
MAXCRYPTO = """
maxCrypto Supported = Yes
maxCrypto Status = Disabled
License Installed = Not Installed
Express Local maxCrypto = Not Configured
Controller Password = Not Configured
Crypto Officer Password = Not Configured
User Password = Not Configured
Allow New Plaintext Logical device(s) = Not Applicable
Key Management Mode = Not Configured
Master Key = Not Configured
Remote Mode Master Key Mismatch = No
Master Key Reset in Progress = No
Local Key Cache = Not Configured
FW Locked for Update = No
Controller Locked = No
Has Suspended Controller Password = No
Logical Drive(s) Locked For Missing Controller Password = No
Password Recovery Parameters Set = No
SSD I/O Bypass Mixing = Supported
maxCache Mixing = Supported
Skip Controller Password = Disabled
Number of maxCrypto Physical devices = 0
Number of maxCrypto Data Logical devices = 0
Number of maxCrypto Foreign Logical devices without key = 0
Number of maxCrypto Logical devices with maxCrypto off = 0
"""
MAXCRYPTO_COLUMN = 59

SMART_VOLUME = """
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

SMART_DRIVE = """
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

SMART_ENCLOSURE = """
Reported Channel,Device(T:L)
Enclosure ID
Enclosure Logical Identifier
Type = SES2
Vendor
Model
Firmware
"""

HBA_ADAPTER = """
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
