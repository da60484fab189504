# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""``/cx show all`` of storcli2: the many sections about what a card is and can do, in front of the tables.

Labels and their order are those of a capture of a MegaRAID 9660-16i with firmware 8.12; the values are that card's, except
what is in the state. That other cards have the same sections is assumed.
"""

from __future__ import annotations

from .simulator import State
from .storcli2_text import Data, controller_status, library_version, pack_status, personality, table, tables, volumes_of

_CONTROLLER_OPERATIONS = """
Support Enclosure Affinity
Support Foreign Config Import
Support Foreign Config Clear
Support Self Diagnostic Check
Support Diag Retention Test
Support Cache Offload Info
FW and Event Time in GMT
Support Abort CC on Error
Support Multipath
Support Security
Support Security Suggest
Support Portable Security Key = No
Support Security Key Per PD = No
Support LKM = Yes, Supported using both in-band and out-of-band command
Support EKM = Yes, Supported using both in-band and out-of-band command
Support LKM to EKM
Support EKM to LKM = No
Support PFK
Support Electronic PFK = No
Support Ldbbm
Support Shield State
Support SSD Ld Disk Cache Change
Support Operation Suspend Resume
Support Emergency Spares
Support Device Mgmt PEL
Support CC Schedule
Support PatrolRead
Support SSD PatrolRead
Support Resize Array
Support Drive Performance Monitoring
Support Emulated Drives
Support Limited Dedicated HotSpares
Support Factory Defaults set
Support Personality
Support NVCache Info Get
Support NVCache Erase
Support Cache Offload Encryption = No
Support CacheBypass Modes
Support Purge Cache During VD Delete
Support BoardLogic Update
Support Ibuttonless
Support Host Info
Support Cache-Vault Health Info
Support PCIe Devices
Support Extended MPB VPD pages
Support Snapdump
Support Energy Pack
Support Energy Pack VPD
Support Multiple Security keys(One Per PD) = No
Support Platform Security
Support SESCtrl In Multipath Config = No
Support R6 Individual PD Suspend/Resume = No
Support SAS Config
Support limiting of SAS Link speed = Yes, Supports only max link speed limit control of a SAS Phy
Support limiting of SAS Link speed per Phy
Support PCIe Config
Support limiting of PCIe Link Speed
Support limiting of PCIe Link Speed per Link
Support PCIe Config Lane Mapping
Support Immediate Auto-configure
Support NVMe Recover
Support NVMe Reconfigure = No
Support PCIe Clock mode
Support Enhanced Scheduling
"""
_KEY_MANAGEMENT = """
Capability = Supported
Boot Agent Status = Not Available
Configured = No
"""
_DRIVE_OPERATIONS = """
Support Force Online
Support Make Offline
Support Make Failed = No
Support SpinDown Unconfigured
Support SpinDown HotSpare
Support SpinDown Configured = No
Support T10 Power State
Support Temperature Monitoring
Support WCE
Support Degraded Media Detection
Support PD Secure Erase
Support SSD Wear Gauge = No
Support Mark Missing
Support Replace Missing
Support Prepare For Removal
Support Drive Power State Change = Yes, Supports only Spin-Up
"""
_VOLUME_OPERATIONS = """
Support Changing Read Policy
Support Changing Write Policy
Support Changing Disk Cache Policy
Support Online Capacity Expansion = Yes, with VD Expansion and addition of Drives only
Support LDBBM
Support Secure Erase
Support Unmap for single drive RAID 0 VDs
Support Unmap for RAID 0 VDs
Support Unmap for RAID 1/10 VDs
Support Unmap for RAID 5/50/6/60 VDs
Support Writesame Unmap for single drive RAID 0 VDs
Support Writesame Unmap for RAID 0 VDs
Support Writesame Unmap for RAID 1/10 VDs
Support Writesame Unmap for RAID 5/50/6/60 VDs
Support T10 Atomicity = No
"""
_LIMITS = """
Max Number of VDs = 240
Max Number of Physical Drives = 240
Max SAS/SATA Drives = 240
Max NVMe Drives = 32
Max Arrays = 240
Max PD Per Array = 32
Max Spans Per VD = 8
Max Dedicated HSPs = 64
Max Global HSPs = 64
Max VDs Per Array = 16
Max Phys = 16
Max JBODs = 240
Max RAID Configurable PDs = 240
Max Complex RAID VDs = 64
Max Data Transfer Size(Bytes) = 1048576
Max Parallel Commands = 8192
Max NS/LU per JBOD = 4
Max NS/LU per RAID PDs = 1
Max Supported LUNs for SAS PDs = 4
Max Namespaces = 1
Max Persistent Id = 1024
Max VD's per Array in configuration = 16
Max Key Id length = 256
Max Security Key length = 32
Max Secret Key length = 32
"""
_PROPERTIES = """
Patrol Read Rate(%) = 30
BGI Rate(%) = 30
Consistency Check Rate(%) = 30
OCE Rate(%) = 30
Drive Coercion Mode = 0 (None)
Auto Rebuild
Energy Pack Warning = No
Data Loss Warning
Ecc Bucket Size(Entries) = 15
ECC Bucket Leak Rate(minute(s)) = 1440
Expose Enclosure Devices
Maintain Drive Fail History
Maintain Drive Fail History - JBOD
All Online Controller Reset
Auto Online Controller Reset
Abort CC on Error = No
Replace Drive
HDD SMARTer Enabled
SSD SMARTer Enabled
PR Correct UnConfigured Areas
Support SSD Patrol Read
SpinDown Unconfigured Drive
Boot With Preserved Cache
SpinDown HotSpare = No
Emergency GHS
Emergency UG
Emergency SMARTer
Fail On SMARTer = No
LED management for JBOD
SES VPD Association = TargetPort
Base Enclosure Level = Enclosure level enumeration start with Zero
SMART/Temperature PollInterval-For External PDs only(second(s)) = 300
SMART/Temperature PollInterval-For Internal PDs only(second(s)) = 300
SpinDown Time(minute(s)) = 30
Spinup Drive Count = 2
Spinup Delay(second(s)) = 2
Spinup Encl Drive Count = 4
Spinup Enclosure Delay(second(s)) = 12
Drive Detection Type = Disabled
Drive Corrective Action = Only Log Events
Drive Error Threshold = Every 8 Hours
Boot Mode = COE
Name =
SmartPoll - RAID PDs
SmartPoll - JBOD PDs
PD Temperature Poll
Security on JBOD
Host Managed Security on JBOD = No
"""
_CAPABILITIES = """
Supported Drive Interfaces = SAS, SATA, NVMe
Supported RAID Levels = RAID0, RAID1, RAID5, RAID6, RAID10, RAID50, RAID60
Mix of SAS-HDD/SATA-HDD in VD = Allowed
Mix of SAS-SSD/SATA-SSD in VD = Allowed
Mix of SSD/HDD in VD = Not Allowed
Mix of SED type(Enterprise,OPAL,and RUBY) for Security Enabled Arrays = Not Allowed
Mix of different NS/LU count in a VD = Not Allowed
Mix of NVMe SGL and PRP in a VD = Allowed
"""
_SECURE_BOOT = """
Secure Boot State = Enabled
Secure Boot Mode = Hard Secure
Total Number Of Key Slots = 8
Number Of Key Slots Used = 1
Remaining Key Slots = 7
Current Key Encryption Algorithm = RSA2048
Key Hash Size = SHA256
Key Hash Version = SHA3
Security Version Number = 00.00.00.00
"""
_STATUS_REST = """
Critical Predictive Failure PD Drive Count = 0
Failed PD Drive Count = 0
Memory Correctable Errors = 0
Memory Uncorrectable Errors = 0
ECC Bucket Count = 0
Preserved Cache Present
System Reboot Required
System Shutdown Required
Controller Reset Required
Security Key Assigned
Security Type = None
Failed to get Security key on bootup
Bios was not detected during boot
Boot Time Secret Key Provider = OOB,In-band
EKM Key Provider = OOB,In-band
Controller must be rebooted to complete security operation
Controller has booted into safe mode
Controller has trial features enabled
Personality Change Pending
Security Key Rekey Pending
Reconfigure types = Change the format option only for existing name-spaces
"""


def controller_details(state: State, controller: State) -> Data:
    """``/cx show all``: the sections, then the same tables as ``/cx show``."""
    return {
        "Basics": _basics(controller),
        "Version": _versions(state, controller),
        "HostInterface": {
            "Max PCIe Link Rate": controller["max_link_rate"],
            "Max PCIe Port Width": controller["port_width"],
            "PCI Address": controller["pci_address"],
            "PCIe Link Width": f"X{controller['port_width']} Lane(s)",
        },
        "DeviceInterface": {
            "SAS/SATA": controller["sas"],
            "PCIe": controller["pcie"],
            "PCI Vendor ID": controller["pci_vendor"],
            "PCI Device ID": controller["pci_device"],
            "PCI Subsystem Vendor ID": controller["pci_subvendor"],
            "PCI Subsystem ID": controller["pci_subdevice"],
        },
        "Status": {
            "Controller Status": controller_status(state),
            "VD Count": len(volumes_of(state, controller)),
            "VD Degraded Count": 0,
            "VD Offline Count": 0,
            "PD Count": len(controller["drives"]) + len(controller["enclosures"]),
            "PD Drive Count": len(controller["drives"]),
            **table(_STATUS_REST, "No", numbers=True),
            "Controller Personality": personality(state, controller),
        },
        "Supported Controller operations": table(_CONTROLLER_OPERATIONS),
        "External Key Management": table(_KEY_MANAGEMENT),
        "Supported PD operations": table(_DRIVE_OPERATIONS),
        "Supported VD operations": table(_VOLUME_OPERATIONS),
        "HwCfg": _hardware(state, controller),
        "Max. Supported Config": table(_LIMITS, numbers=True),
        "Properties": table(_PROPERTIES, numbers=True),
        "Capabilities": table(_CAPABILITIES),
        "NVCache Information": {"NVCache Flash Capacity(MiB)": 22170, "Bad Block Capacity(MiB)": 135, "Allowable bad blocks consumed(%)": 19},
        "Scheduled Tasks": {
            "Patrol Read Execution Frequency(hours)": "168",
            "Next Patrol Read Start time(LocalTime yyyy/mm/dd hh:mm:sec)": "2026/06/04 17:00:00",
        },
        "Secure Boot Details": table(_SECURE_BOOT, numbers=True),
        "Security Protocol Details": {"Security Protocol": controller["security_protocol"]},
        **tables(state, controller),
    }


def _basics(controller: State) -> Data:
    return {
        "Product Name": controller["product"],
        "Board Name": controller["board"].ljust(32),
        "Board Assembly": controller["assembly"].ljust(32),
        "Board Tracer Number": controller["serial"].ljust(32),
        "Board Revision": controller["board_revision"].ljust(8),
        "Chip Name": controller["chip"].ljust(32),
        "Chip Revision": controller["chip_revision"].ljust(8),
        "Board Mfg Date(yyyy/mm/dd)": controller["manufactured"],
        "Board Rework Date(yyyy/mm/dd)": "0000/00/00",
        "Custom Serial Number": " " * 32,
        "SAS Address": controller["sas_address"],
        "Serial Number": controller["serial"],
        "Controller Time(LocalTime yyyy/mm/dd hh:mm:sec)": controller["time"],
        "System Time(LocalTime yyyy/mm/dd hh:mm:sec)": controller["time"],
        "OEM": controller["oem"],
        "SubOEMID": 0,
        "PCI Slot Number": controller["pci_slot"],
    }


def _versions(state: State, controller: State) -> Data:
    security = controller["firmware_security"]
    versions: Data = {"Package Version": controller["package"]}
    for part, version in (
        ("Firmware", controller["firmware"]),
        ("FMC", controller["firmware"]),
        ("BSP", controller["firmware"]),
        ("BIOS", "0x080C0400"),
        ("HIIM", "08.12.04.00"),
        ("HIIA", "08.12.04.00"),
    ):
        versions[f"{part} Version"] = version
        versions[f"{part} Security Version Number"] = security
    return {
        **versions,
        "PSOC Hardware Version": "6.64",
        "PSOC Firmware Version": "28.00",
        "PSOC Part Number": "25953-280-aaa",
        "NVDATA Version": controller["nvdata"],
        "Driver Name": controller["driver_name"],
        "Driver Version": controller["driver"],
        "SL8 Library Version": library_version(state),
    }


def _hardware(state: State, controller: State) -> Data:
    return {
        "NVRAM": "Present",
        "NVRAM Size(KiB)": 128,
        "DDR Memory Size(MiB)": controller["memory"],
        "Flash": "Present",
        "NOR Flash Size(MiB)": 32,
        "CacheVault Flash Size(MiB)": 22170,
        "OCM Memory": "Present",
        "OCM Memory Size(MiB)": 15,
        "Current Size of FW Cache(MiB)": controller["cache"],
        "DDR Width": "72-bit",
        "Energy Pack": "Absent" if pack_status(state) == "Missing" else "Present",
        "Upgrade Key": "Absent",
        "Upgrade Key Slot": "Present",
        "On Board Expander": "Absent",
        "Temperature Sensor for Chip": "Present",
        "Temperature Sensor for Board": "Present",
        "Upgradable Board Logic": "Present",
        "PCI Switch": "Absent",
        "Serial Debugger": "Present",
        "Chip temperature(C)": controller["chip_temperature"],
        "Board temperature(C)": controller["board_temperature"],
        "Controller Fan": "Absent",
    }
