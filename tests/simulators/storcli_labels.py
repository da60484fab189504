# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What ``/cx show all`` of a simulated storcli or perccli prints that does not depend on the configuration.

Each table has one column per generation of card ("layout"), in the order of :data:`LAYOUTS` (MegaRAID) or :data:`HBA_LAYOUTS`
(plain SAS adapters). A row with one value has this value everywhere; ``None`` and ``.`` mean that this generation does not print
the label. The labels, their order and their types are those of real outputs; values that identify a card are not here.
"""

from __future__ import annotations

import typing as t

#: Generations of MegaRAID cards: 93xx, 95xx, 92xx, HPE MR Gen10 Plus (own words), Dell PERC 10 and 11.
LAYOUTS = ("sas3108", "sas3908", "sas2108", "hpe", "perc")
#: Generations of adapters without RAID: 94xx, 95xx.
HBA_LAYOUTS = ("hba9400", "hba9500")

Rows = t.Tuple[t.Tuple[t.Any, ...], ...]
Section = t.Dict[str, t.Any]

_FLAGS = {"Y": "Yes", "N": "No", "-": "NA", ".": None}
_NEXT = "11/28/2026, 03:00:00"
_LEARN = "12/12/2026, 04:00:00"
_LEVELS_ALL = "RAID0, RAID1(2 or more drives), RAID5, RAID6, RAID00, RAID10(2 or more drives per span), RAID50, RAID60"
_LEVELS_PERC = "RAID0, RAID1, RAID5, RAID6, RAID10(2 or more drives per span), RAID50, RAID60"


def _rows(*rows: tuple[t.Any, ...]) -> Rows:
    return rows


def _flags(*rows: tuple[str, str]) -> Rows:
    return tuple((label, *(_FLAGS[flag] for flag in flags)) for label, flags in rows)


def _column(rows: Rows, layouts: tuple[str, ...], layout: str) -> Section:
    place = layouts.index(layout)
    section = {label: values[0] if len(values) == 1 else values[place] for label, *values in rows}
    return {label: value for label, value in section.items() if value is not None}


_VERSION = {
    "sas3108": (
        ("Firmware Package Build", "24.21.0-0076"),
        ("Firmware Version", "4.680.00-8417"),
        ("CPLD Version", "26515-01A"),
        ("Bios Version", "6.36.00.3_4.19.08.00_0x06180203"),
        ("HII Version", "03.25.05.10"),
        ("Ctrl-R Version", "5.19-0603"),
        ("Preboot CLI Version", "01.07-05:#%0000"),
        ("NVDATA Version", "3.1705.00-0018"),
        ("Boot Block Version", "3.07.00.00-0003"),
        ("Driver Name", "megaraid_sas"),
        ("Driver Version", "07.714.04.00-rc1"),
    ),
    "sas3908": (
        ("Firmware Package Build", "52.24.0-4763"),
        ("Firmware Version", "5.240.02-3768"),
        ("NVDATA Version", "5.2400.00-0634"),
        ("CBB Version", "24.250.10.00"),
        ("Bios Version", "7.24.01.0_0x07180100"),
        ("HII Version", "07.24.03.00"),
        ("HIIA Version", "07.24.03.00"),
        ("Driver Name", "megaraid_sas"),
        ("Driver Version", "07.727.03.00-rc1"),
    ),
    "sas2108": (
        ("Firmware Package Build", "12.15.0-0239"),
        ("Firmware Version", "2.130.403-4660"),
        ("Bios Version", "3.30.02.2_4.16.08.00_0x06060A05"),
        ("Preboot CLI Version", "04.04-020:#%00009"),
        ("WebBIOS Version", "6.0-54-e_50-Rel"),
        ("NVDATA Version", "2.09.03-0058"),
        ("Boot Block Version", "2.02.00.00-0000"),
        ("Bootloader Version", "09.250.01.219"),
        ("Driver Name", "megaraid_sas"),
        ("Driver Version", "07.725.01.00-rc1"),
    ),
    "hpe": (
        ("Firmware Package Build", "52.16.3-3913"),
        ("Firmware Version", "5.160.03-3444"),
        ("NVDATA Version", "5.1600.16-0421"),
        ("CBB Version", "17.25.01.00"),
        ("Bios Version", "7.16.00.0_0x07100501"),
        ("HII Version", "07.16.05.02"),
        ("HIIA Version", "07.16.05.02"),
        ("Driver Name", "megaraid_sas"),
        ("Driver Version", "07.717.02.00-rc1"),
    ),
    "perc": (
        ("Firmware Package Build", "52.26.0-5179"),
        ("Firmware Version", "5.260.02-3940"),
        ("CPLD Version", "209"),
        ("NVDATA Version", "5.2600.00-0677"),
        ("CBB Version", "26.250.06.00"),
        ("Bios Version", "7.26.00.0_0x071A0000"),
        ("HII Version", "07.26.01.01"),
        ("HIIA Version", "07.26.01.01"),
        ("Driver Name", "megaraid_sas"),
        ("Driver Version", "07.727.03.00-rc1"),
    ),
}

_BUS = _rows(
    ("Vendor Id", 4096),
    ("Device Id", 93, 4322, 121, 4322, 4322),
    ("SubVendor Id", 4096, 4096, 4116, 5520, 4136),
    ("SubDevice Id", 37729, 16400, 946, 812, 6881),
    ("Host Interface", "PCI-E"),
    ("Device Interface", "SAS-12G", "SAS-12G", "SAS-6G", "SAS-12G", "SAS-12G"),
    ("Bus Number", 2, 193, 10, 100, 101),
    ("Device Number", 0),
    ("Function Number", 0),
    ("Domain ID", 0),
)

_STATUS = _rows(
    ("Controller Status", "Optimal"),
    ("Memory Correctable Errors", 0),
    ("Memory Uncorrectable Errors", 0),
    ("ECC Bucket Count", 0),
    ("Any Offline VD Cache Preserved", "No"),
    ("BBU Status", 0, 0, 0, None, 0),
    ("Energy Pack Status", None, None, None, "NA", None),
    ("PD Firmware Download in progress", "No"),
    ("Support PD Firmware Download", "Yes", "Yes", "Yes", None, "Yes"),
    ("Support Drive Firmware Download", None, None, None, "Yes", None),
    ("Lock Key Assigned", "No"),
    ("Failed to get lock key on bootup", "No"),
    ("Lock key has not been backed up", "No"),
    ("Bios was not detected during boot", "No"),
    ("Controller must be rebooted to complete security operation", "No"),
    ("A rollback operation is in progress", "No"),
    ("At least one PFK exists in NVRAM", "Yes", "No", "No", "No", "No"),
    ("SSC Policy is WB", "No"),
    ("Controller has booted into safe mode", "No"),
    ("Controller shutdown required", "No"),
    ("Controller has booted into certificate provision mode", "No"),
    ("Current Personality", None, "RAID-Mode ", None, "JBOD-Mode ", "RAID-Mode "),
)

_ADAPTER = _flags(
    ("Rebuild Rate", "YYYYY"),
    ("CC Rate", "YYYYY"),
    ("BGI Rate ", "YYYYY"),
    ("Reconstruct Rate", "YYY.Y"),
    ("Transformation Rate", "...Y."),
    ("Patrol Read Rate", "YYYYY"),
    ("Alarm Control", "NNYNN"),
    ("Cluster Support", "NNNNN"),
    ("BBU", "YYY.Y"),
    ("Energy Pack", "...-."),
    ("Spanning", "YYYYY"),
    ("Dedicated Hot Spare", "YYY.Y"),
    ("Revertible Hot Spares", "YYY.Y"),
    ("Dedicated Spare", "...Y."),
    ("Revertible Spares", "...Y."),
    ("Foreign Config Import", "YYYYY"),
    ("Self Diagnostic", "YYYYY"),
    ("Allow Mixed Redundancy on Array", "NNNNN"),
    ("Global Hot Spares", "YYY.Y"),
    ("Global Spares", "...Y."),
    ("Deny SCSI Passthrough", "NNNNN"),
    ("Deny SMP Passthrough", "NNNNN"),
    ("Deny STP Passthrough", "NNNNN"),
    ("Support more than 8 Phys", "YYYYY"),
    ("FW and Event Time in GMT", "NNNNN"),
    ("Support Enhanced Foreign Import", "YYYYY"),
    ("Support Enclosure Enumeration", "YYYYY"),
    ("Support Allowed Operations", "YYYYY"),
    ("Abort CC on Error", "YYYYY"),
    ("Support Multipath", "YYYYY"),
    ("Support Odd & Even Drive count in RAID1E", "NNNNN"),
    ("Support Security", "NYYYY"),
    ("Support Config Page Model", "YYYYY"),
    ("Support the OCE without adding drives", "YYYYY"),
    ("Support EKM", "NYYYY"),
    ("Snapshot Enabled", "NNYNN"),
    ("Support PFK", "YYNYN"),
    ("Support PI", "YNNNN"),
    ("Support LDPI Type1", "N...."),
    ("Support LDPI Type2", "N...."),
    ("Support LDPI Type3", "N...."),
    ("Support Ld BBM Info", "NNNNN"),
    ("Support Shield State", "YYNYY"),
    ("Block SSD Write Disk Cache Change", "YNNYN"),
    ("Support Suspend Resume BG ops", "YYNYY"),
    ("Support Emergency Spares", "NYYNN"),
    ("Support Set Link Speed", "YYNYY"),
    ("Support Boot Time PFK Change", "NNNNN"),
    ("Support JBOD", "YNNN."),
    ("Support SystemPD", "....N"),
    ("Disable Online PFK Change", "NNNYN"),
    ("Support Perf Tuning", "YYNYY"),
    ("Support SSD PatrolRead", "YYYYY"),
    ("Real Time Scheduler", "YYYYN"),
    ("Support Reset Now", "YYYYY"),
    ("Support Emulated Drives", "YYNYN"),
    ("Headless Mode", "YYYYN"),
    ("Dedicated HotSpares Limited", "NNN.N"),
    ("Dedicated Spares Limited", "...N."),
    ("Point In Time Progress", "YYNYY"),
    ("Extended LD", "YYNYY"),
    ("Support Uneven span ", "NNNNY"),
    ("Support Config Auto Balance", "NNNNN"),
    ("Support Maintenance Mode", "NNNNN"),
    ("Support Diagnostic results", "YYNYY"),
    ("Support Ext Enclosure", "YYNYY"),
    ("Support Sesmonitoring", "YYNYY"),
    ("Support SecurityonJBOD", "YYNYN"),
    ("Support ForceFlash", "YYNYY"),
    ("Support DisableImmediateIO", "YYYYY"),
    ("Support LargeIOSupport", "YNNNN"),
    ("Support DrvActivityLEDSetting", "YYYYY"),
    ("Support FlushWriteVerify", "YYNYN"),
    ("Support CPLDUpdate", "YNNNY"),
    ("Support ForceTo512e", "YYNYN"),
    ("Support discardCacheDuringLDDelete", "YYNYN"),
    ("Support JBOD Write cache", "NNNNN"),
    ("Support Large QD Support", "NNNNN"),
    ("Support Ctrl Info Extended", "NYNYY"),
    ("Support IButton less", "NYNYY"),
    ("Support AES Encryption Algorithm", "NNNNN"),
    ("Support Encrypted MFC", "NYNYY"),
    ("Support Snapdump", "NYNYY"),
    ("Support Force Personality Change", "NYNNN"),
    ("Support Dual Fw Image", "NNNNN"),
    ("Support PSOC Update", "NYNYN"),
    ("Support Secure Boot", "NYNYY"),
    ("Support Debug Queue", "YNNNN"),
    ("Support Least Latency Mode", "YNYNN"),
    ("Support OnDemand Snapdump", "NYNYY"),
    ("Support Clear Snapdump", "NYNYY"),
    ("Support FW Triggered Snapdump", ".Y.YY"),
    ("Support PHY current speed", "NYNYY"),
    ("Support Lane current speed", "NYNYN"),
    ("Support NVMe Width", "NYNYY"),
    ("Support Lane DeviceType", "NYNYN"),
    ("Support Extended Drive performance Monitoring", "NYNYY"),
    ("Support NVMe Repair", "NYNYN"),
    ("Support Platform Security", "NNNNN"),
    ("Support None Mode Params", "NYNYY"),
    ("Support Extended Controller Property", "NYNYY"),
    ("Support Smart Poll Interval for DirectAttached", "NYNYY"),
    ("Support Write Journal Pinning", "NYNYY"),
    ("Support SMP Passthru with Port Number", "NYNYY"),
    ("Support SnapDump Preboot Trace Buffer Toggle", "..NYY"),
    ("Support Parity Read Cache Bypass", "..NNY"),
    ("Support NVMe Init Error Device ConnectorIndex", "NNNYN"),
    ("Support VolatileKey", "..NNY"),
    ("Support PSOC Part Information", "..NNN"),
    ("Support Slow array threshold calculation", "..NN."),
    ("Support PCIe Reference Clock override", "..N.."),
    ("Support PCIe PERST override", "..N.."),
    ("Support Drive FW Download Mask", "..N.."),
    ("Support Start of day PL log capture", "..N.."),
    ("Support Drive Unrecovered Medium Error Count", "..N.."),
)

_KEYS = _rows(
    ("Capability", None, "Supported", "Supported", "Supported", "Supported"),
    ("Boot Agent", None, "Not Available", "Not Available", "Not Available", "Available"),
    ("Configured", None, "No", "No", "No", "No"),
)

_DRIVE_OPERATIONS = _flags(
    ("Force Online", "YYYYY"),
    ("Force Offline", "YYYYY"),
    ("Force Rebuild", "YYYYY"),
    ("Deny Force Failed", "NNNNN"),
    ("Deny Force Good/Bad", "NNNNN"),
    ("Deny Missing Replace", "NNNNY"),
    ("Deny Clear", "NNNNN"),
    ("Deny Locate", "NNNNN"),
    ("Support Power State", "YYNNY"),
    ("Set Power State For Cfg", "NNNNN"),
    ("Support T10 Power State", "NNNNN"),
    ("Support Temperature", "YYYYY"),
    ("NCQ", "YYNYY"),
    ("Support Max Rate SATA", "NNNNN"),
    ("Support Degraded Media", "NNNNN"),
    ("Support Parallel FW Update", "YYNYY"),
    ("Support Drive Crypto Erase", "YYNYY"),
    ("Support SSD Wear Gauge", "NNNYN"),
    ("Support Sanitize", "..NNN"),
    ("Support Extended Sanitize", "..NNY"),
)

_VOLUME_OPERATIONS = _flags(
    ("Read Policy", "YYYYY"),
    ("Write Policy", "YYYNY"),
    ("IO Policy", "YNYNN"),
    ("Access Policy", "YYYYY"),
    ("Disk Cache Policy", "YYYYY"),
    ("Reconstruction", "YYY.Y"),
    ("Transformation", "...Y."),
    ("Deny Locate", "NNNNN"),
    ("Deny CC", "NNNNN"),
    ("Allow Ctrl Encryption", "NNNNN"),
    ("Enable LDBBM", "YYNNY"),
    ("Support FastPath", "YYYYY"),
    ("Performance Metrics", "YYYYY"),
    ("Power Savings", "NNNNN"),
    ("Support Powersave Max With Cache", "NNNNN"),
    ("Support Breakmirror", "YNNNN"),
    ("Support SSC WriteBack", "YNYNN"),
    ("Support SSC Association", "YNYNN"),
    ("Support VD Hide", "YYNYN"),
    ("Support VD Cachebypass", "YYNYY"),
    ("Support VD discardCacheDuringLDDelete", "YYNYN"),
    ("Support VD Scsi Unmap", "NYNYN"),
)

_HARDWARE = _rows(
    ("ChipRevision", " C0", " A0", " B2", " A0", " A0"),
    ("BatteryFRU", "N/A"),
    ("Front End Port Count", 0),
    ("Backend Port Count", 8, 8, 8, 16, 16),
    ("BBU", "Present", "Present", "Present", None, "Present"),
    ("Energy Pack", None, None, None, "Absent", None),
    ("Alarm", "On", "Absent", "Disable", "Absent", "Absent"),
    ("Serial Debugger", "Present"),
    ("NVRAM Size", "32KB", "128KB", "32KB", "128KB", "128KB"),
    ("Flash Size", "16MB", "16MB", "8MB", "16MB", "16MB"),
    ("On Board Memory Size", "1024MB", "4096MB", "512MB", "4096MB", "8192MB"),
    ("CacheVault Flash Size", "4.000 GB", "17.320 GB", "NA", "NA", "23.625 GB"),
    ("TPM", "Absent"),
    ("Upgrade Key", "Absent", "Absent", "Present", "Absent", "Absent"),
    ("On Board Expander", "Absent"),
    ("Temperature Sensor for ROC", "Present", "Present", "Absent", "Present", "Present"),
    ("Temperature Sensor for Controller", "Absent", "Absent", "Absent", "Absent", "Present"),
    ("Upgradable CPLD", "Present", "Absent", "Absent", "Absent", "Present"),
    ("Upgradable PSOC", "Absent", "Present", "Absent", "Present", "Absent"),
    ("Current Size of CacheCade (GB)", 0),
    ("Current Size of FW Cache (MB)", 637, 3142, 349, 3142, 6678),
    ("ROC temperature(Degree Celsius)", 52, 49, None, 49, 47),
    ("Ctrl temperature(Degree Celsius)", None, None, None, None, 47),
)

_POLICIES = _rows(
    ("Flush Time(Default)", "4s"),
    ("Drive Coercion Mode", "none", "none", "1GB", "none", "128MB"),
    ("Auto Rebuild", "On"),
    ("Battery Warning", "On", "On", "On", "Off", "On"),
    ("ECC Bucket Size", 15, 15, 15, 15, 255),
    ("ECC Bucket Leak Rate (hrs)", 24),
    ("Restore Hot Spare on Insertion", "On", "Off", "Off", None, "Off"),
    ("Restore Spare on Insertion", None, None, None, "On", None),
    ("Expose Enclosure Devices", "Off", "On", "On", "On", "Off"),
    ("Maintain PD Fail History", "On", "On", "On", None, "Off"),
    ("Maintain Drive Fail History", None, None, None, "Off", None),
    ("Reorder Host Requests", "On"),
    ("Auto detect BackPlane", "SGPIO/i2c SEP", "SGPIO/i2c SEP", "SGPIO/i2c SEP", "disable auto detect SGPIO", "SGPIO/i2c SEP"),
    ("Load Balance Mode", "Auto"),
    ("Security Key Assigned", "Off"),
    ("Disable Online Controller Reset", "Off"),
    ("Use drive activity for locate", "Off"),
)

_BOOT = _rows(
    ("BIOS Enumerate VDs", 1),
    ("Stop BIOS on Error", "Off", "Off", "On", "Off", "Off"),
    ("Delay during POST", 0, 0, 4, 0, 0),
    ("Spin Down Mode", "None"),
    ("Enable Ctrl-R", "Yes", "No", "No", "No", "No"),
    ("Enable Web BIOS", "No", "No", "Yes", "No", "No"),
    ("Enable PreBoot CLI", "No", "No", "Yes", "No", "No"),
    ("Enable BIOS", "Yes"),
    ("Max Drives to Spinup at One Time", 2, 2, 4, 2, 2),
    ("Maximum number of direct attached drives to spin up in 1 min", 20, 60, 20, 60, 60),
    ("Delay Among Spinup Groups (sec)", 6, 2, 12, 2, 2),
    ("Allow Boot with Preserved Cache", "Off"),
)

_AVAILABILITY = _rows(
    ("Topology Type", "None"),
    ("Cluster Permitted", "No"),
    ("Cluster Active", "No"),
)

_DEFAULTS = _rows(
    ("Phy Polarity", 0),
    ("Phy PolaritySplit", 0),
    ("Strip Size", "256 KB", "256 KB", "128 KB", "256 KB", "256 KB"),
    ("Write Policy", "WB", "WB", "WB", "WT", "WB"),
    ("Read Policy", "RA", "RA", "No Read Ahead", "No Read Ahead", "Adaptive"),
    ("Cache When BBU Bad", "Off"),
    ("Cached IO", "Off"),
    ("VD PowerSave Policy", "Controller Defined"),
    ("Default spin down time (mins)", 30),
    ("Coercion Mode", "None", "None", "1 GB", "None", "128 MB"),
    ("ZCR Config", "Unknown"),
    ("Max Chained Enclosures", 16, 16, 16, 0, 4),
    ("Direct PD Mapping", "No", "No", "No", None, "No"),
    ("Restore Hot Spare on Insertion", "Yes", "No", "No", None, "No"),
    ("Direct Drive Mapping", None, None, None, "No", None),
    ("Restore Spare on Insertion", None, None, None, "Yes", None),
    ("Expose Enclosure Devices", "No", "Yes", "Yes", "Yes", "No"),
    ("Maintain PD Fail History", "Yes", "Yes", "Yes", None, "No"),
    ("Maintain Drive Fail History", None, None, None, "No", None),
    ("Zero Based Enclosure Enumeration", "No", "No", "No", "No", "Yes"),
    ("Disable Puncturing", "No", "No", "Yes", "No", "No"),
    ("EnableLDBBM", "Yes", "Yes", "No", "No", "Yes"),
    ("DisableHII", "No"),
    ("Un-Certified Hard Disk Drives", "Allow"),
    ("SMART Mode", "Mode 6"),
    ("Enable LED Header", "No", "Yes", "No", "No", "No"),
    ("LED Show Drive Activity", "Yes", "Yes", "No", "No", "Yes"),
    ("Dirty LED Shows Drive Activity", "No"),
    ("EnableCrashDump", "Yes", "No", "No", "No", "No"),
    ("Disable Online Controller Reset", "No"),
    ("Treat Single span R1E as R10", "No", "No", "No", "Yes", "Yes"),
    ("Power Saving option", "Enabled", "Enabled", "Enabled", "Disabled", "Enabled"),
    ("TTY Log In Flash", "Yes", "No", "No", None, "Yes"),
    ("Serial Log In Flash", None, None, None, "Yes", None),
    ("Auto Enhanced Import", "No", "Yes", "No", "Yes", "No"),
    ("BreakMirror RAID Support", "single span R1", "No", "No", "No", "No"),
    ("Disable Join Mirror", "Yes", "Yes", "No", "No", "Yes"),
    ("Enable Shield State", "Yes", "Yes", "No", "Yes", "No"),
    ("Time taken to detect CME", "60 sec"),
)

_CAPABILITIES = _rows(
    ("Supported Drives", "SAS, SATA", "SAS, SATA, NVMe", "SAS, SATA", "SAS, SATA, NVMe", "SAS, SATA"),
    ("RAID Level Supported", _LEVELS_ALL, _LEVELS_ALL, _LEVELS_ALL, "RAID0, RAID1, RAID10(2 or more drives per span)", _LEVELS_PERC),
    ("Enable JBOD", "No", "No", "No", "No", None),
    ("Enable SystemPD", None, None, None, None, "No"),
    ("Mix in Enclosure", "Allowed"),
    ("Mix of SAS/SATA of HDD type in VD", "Not Allowed", "Allowed", "Not Allowed", "Not Allowed", "Not Allowed"),
    ("Mix of SAS/SATA of SSD type in VD", "Not Allowed"),
    ("Mix of SSD/HDD in VD", "Not Allowed"),
    ("SAS Disable", "No"),
    ("Max Arms Per VD", 32),
    ("Max Spans Per VD", 8),
    ("Max Arrays", 128, 240, 128, 240, 240),
    ("Max VD per array", 16, 16, 16, 64, 16),
    ("Max Number of VDs", 64, 240, 64, 240, 240),
    ("Max Parallel Commands", 928, 5101, 1008, 9197, 5101),
    ("Max SGE Count", 60),
    ("Max Data Transfer Size", "8192 sectors", "2048 sectors", "8192 sectors", "2048 sectors", "2048 sectors"),
    ("Max Strips PerIO", 128, 42, 42, 42, 42),
    ("Max Configurable CacheCade Size(GB)", 1024, 0, 512, 0, 0),
    ("Max Transportable DGs", 0),
    ("Enable Snapdump", "No", "Yes", "No", "Yes", "Yes"),
    ("Enable SCSI Unmap", "Yes", "Yes", "Yes", "Yes", "No"),
    ("Read cache bypass enabled for Parity RAID LDs", None, None, "No", "Yes", "Yes"),
    ("FDE Drive Mix Support", "No"),
    ("Min Strip Size", "64 KB", "64 KB", "8 KB", "64 KB", "64 KB"),
    ("Max Strip Size", "1.000 MB"),
)

_TASKS = _rows(
    ("Consistency Check Reoccurrence", "168 hrs"),
    ("Next Consistency check launch", "NA", _NEXT, _NEXT, _NEXT, "NA"),
    ("Patrol Read Reoccurrence", "168 hrs"),
    ("Next Patrol Read launch", _NEXT),
    ("Battery learn Reoccurrence", "670 hrs", "670 hrs", "672 hrs", "NA", "2160 hrs"),
    ("Next Battery Learn", _LEARN, _LEARN, _LEARN, "NA", None),
    ("OEMID", "LSI", "Broadcom", "Lenovo", "HPE", "Dell"),
)

_SECURE_BOOT = _rows(
    ("Secure Boot Enabled", None, "Yes", None, "Yes", "Yes"),
    ("Controller in Soft Secure Mode", None, "No", None, "No", "No"),
    ("Controller in Hard Secure Mode", None, "Yes", None, "Yes", "Yes"),
    ("Key Update Pending", None, "No", None, "No", "No"),
    ("Remaining Secure Boot Key Slots", None, 7, None, 6, 6),
)
_IMAGES = _rows(
    ("Image name", "No pending images"),
)
_SECURITY = _rows(
    ("Security Protocol", "None"),
)

_HBA_VERSION = _rows(
    ("Firmware Package Build", "20.00.00.00", "28.00.00.00"),
    ("Firmware Version", "20.00.00.00", "28.00.00.00"),
    ("Bios Version", "09.33.00.00_20.00.00.00", "09.55.00.00_28.00.00.00"),
    ("NVDATA Version", "20.02.00.22", "28.01.00.12"),
    ("PSOC Version", "05689001", None),
    ("PSOC FW Version", None, "0x0064"),
    ("PSOC Part Number", None, "14790"),
    ("Driver Name", "mpt3sas"),
    ("Driver Version", "38.100.00.00", "48.100.00.00"),
)

_HBA_BUS = _rows(
    ("Vendor Id", 4096),
    ("Device Id", 172, 230),
    ("SubVendor Id", 4096),
    ("SubDevice Id", 12288, 16512),
    ("Host Interface", "PCIE"),
    ("Device Interface", "SAS-12G"),
    ("Bus Number", 1),
    ("Device Number", 0),
    ("Function Number", 0),
    ("Domain ID", 0),
)

_HBA_STATUS = _rows(
    ("Controller Status", "OK"),
    ("Memory Correctable Errors", 0),
    ("Memory Uncorrectable Errors", 0),
    ("Bios was not detected during boot", "No"),
    ("Controller has booted into safe mode", "No"),
    ("Controller has booted into certificate provision mode", "No"),
    ("Package Stamp Mismatch", None, "No"),
)

_HBA_ADAPTER = _flags(
    ("Alarm Control", "NN"),
    ("Cluster Support", "NN"),
    ("Self Diagnostic", "NN"),
    ("Deny SCSI Passthrough", "NN"),
    ("Deny SMP Passthrough", "NN"),
    ("Deny STP Passthrough", "NN"),
    ("Support more than 8 Phys", "YY"),
    ("FW and Event Time in GMT", "NN"),
    ("Support Enclosure Enumeration", "YY"),
    ("Support Allowed Operations", "YY"),
    ("Support Multipath", "YY"),
    ("Support Security", "NY"),
    ("Support Config Page Model", "NN"),
    ("Support the OCE without adding drives", "NN"),
    ("support EKM", "NN"),
    ("Snapshot Enabled", "NN"),
    ("Support PFK", "NN"),
    ("Support PI", "NN"),
    ("Support Shield State", "NN"),
    ("Support Set Link Speed", "NN"),
    ("Support JBOD", "NN"),
    ("Disable Online PFK Change", "NN"),
    ("Real Time Scheduler", "NN"),
    ("Support Reset Now", "NN"),
    ("Support Emulated Drives", "NN"),
    ("Support Secure Boot", "NY"),
    ("Support Platform Security", "NN"),
    ("Support Package Stamp Mismatch Reporting", "NY"),
    ("Support PSOC Update", ".Y"),
    ("Support PSOC Part Information", ".Y"),
    ("Support PSOC Version Information", ".Y"),
)

_HBA_HARDWARE = _rows(
    ("ChipRevision", " B0", " A0"),
    ("BatteryFRU", "N/A"),
    ("Front End Port Count", 1),
    ("Backend Port Count", 21, 11),
    ("Serial Debugger", "Absent"),
    ("NVRAM Size", "0KB"),
    ("Flash Size", "16MB"),
    ("On Board Memory Size", "0MB"),
    ("On Board Expander", "Absent"),
    ("Temperature Sensor for ROC", "Present"),
    ("Temperature Sensor for Controller", "Absent"),
    ("Current Size of CacheCade (GB)", 0),
    ("Current Size of FW Cache (MB)", 0),
    ("ROC temperature(Degree Celsius)", 57, 44),
)

_HBA_POLICIES = _rows(
    ("Flush Time(Default)", "4s"),
    ("Drive Coercion Mode", "none"),
    ("Auto Rebuild", "Off"),
    ("Battery Warning", "Off"),
    ("ECC Bucket Size", 0),
    ("ECC Bucket Leak Rate (hrs)", 0),
    ("Restore HotSpare on Insertion", "Off"),
    ("Expose Enclosure Devices", "Off"),
    ("Maintain PD Fail History", "Off"),
    ("Reorder Host Requests", "On"),
    ("Auto detect BackPlane", "SGPIO/i2c SEP"),
    ("Load Balance Mode", "None"),
    ("Security Key Assigned", "Off"),
    ("Disable Online Controller Reset", "Off"),
    ("Use drive activity for locate", "Off"),
)

_HBA_BOOT = _rows(
    ("Max Drives to Spinup at One Time", 2),
    ("Maximum number of direct attached drives to spin up in 1 min", 60),
    ("Delay Among Spinup Groups (sec)", 2),
    ("Allow Boot with Preserved Cache", "On"),
)

_HBA_DEFAULTS = _rows(
    ("Phy Polarity", 0),
    ("Phy PolaritySplit", 0),
    ("Cached IO", "Off"),
    ("Default spin down time (mins)", 0),
    ("Coercion Mode", "None"),
    ("ZCR Config", "Unknown"),
    ("Max Chained Enclosures", 0),
    ("Direct PD Mapping", "No"),
    ("Restore Hot Spare on Insertion", "No"),
    ("Expose Enclosure Devices", "No"),
    ("Maintain PD Fail History", "No"),
    ("Zero Based Enclosure Enumeration", "No"),
    ("Disable Puncturing", "No"),
    ("Un-Certified Hard Disk Drives", "Block"),
    ("SMART Mode", "Mode 6"),
    ("Enable LED Header", "No"),
    ("LED Show Drive Activity", "No"),
    ("Dirty LED Shows Drive Activity", "No"),
    ("EnableCrashDump", "No"),
    ("Disable Online Controller Reset", "No"),
    ("Treat Single span R1E as R10", "No"),
    ("Power Saving option", "Enable"),
    ("TTY Log In Flash", "No"),
    ("Auto Enhanced Import", "No"),
    ("Enable Shield State", "No"),
    ("Time taken to detect CME", "60 sec"),
)

_HBA_CAPABILITIES = _rows(
    ("Supported Drives", "SAS, SATA", "SAS, SATA, NVMe"),
    ("Enable JBOD", "Yes"),
    ("Max Parallel Commands", 6656, 4992),
    ("Max SGE Count", 128),
    ("Max Data Transfer Size", "32 sectors"),
    ("Max Strips PerIO", 0),
    ("Max Configurable CacheCade Size", 0),
    ("Min Strip Size", "512Bytes"),
    ("Max Strip Size", "512Bytes"),
)

_HBA_SECURE = _rows(
    ("Secure Boot Enabled", None, "Yes"),
    ("Controller in Soft Secure Mode", None, "No"),
    ("Controller in Hard Secure Mode", None, "Yes"),
    ("Key Update Pending", None, "No"),
    ("Remaining Secure Boot Key Slots", None, 7),
)


def megaraid_sections(layout: str) -> dict[str, Section]:
    """Sections of a MegaRAID card between the basics and the drive groups, in the order in which they are printed."""
    drives = "Supported Drive Operations" if layout == "hpe" else "Supported PD Operations"
    sections: dict[str, Section] = {"Version": dict(_VERSION[layout])}
    for title, rows in (
        ("Bus", _BUS),
        ("Pending Images in Flash", _IMAGES),
        ("Status", _STATUS),
        ("Supported Adapter Operations", _ADAPTER),
        ("Enterprise Key management", _KEYS),
        (drives, _DRIVE_OPERATIONS),
        ("Supported VD Operations", _VOLUME_OPERATIONS),
        ("HwCfg", _HARDWARE),
        ("Policies", _POLICIES),
        ("Boot", _BOOT),
        ("High Availability", _AVAILABILITY),
        ("Defaults", _DEFAULTS),
        ("Capabilities", _CAPABILITIES),
        ("Scheduled Tasks", _TASKS),
        ("Secure Boot", _SECURE_BOOT),
        ("Security Protocol properties", _SECURITY),
    ):
        sections[title] = _column(rows, LAYOUTS, layout)
    return {title: section for title, section in sections.items() if section}


def hba_sections(layout: str) -> dict[str, t.Any]:
    """Sections of an adapter without RAID between the basics and the enclosures, in the order in which they are printed."""
    sections: dict[str, t.Any] = {}
    for title, rows in (
        ("Version", _HBA_VERSION),
        ("PCI Version", _HBA_BUS),
        ("Pending Images in Flash", _IMAGES),
        ("Status", _HBA_STATUS),
        ("Supported Adapter Operations", _HBA_ADAPTER),
        ("HwCfg", _HBA_HARDWARE),
        ("Policies", _HBA_POLICIES),
        ("Boot", _HBA_BOOT),
        ("Defaults", _HBA_DEFAULTS),
        ("Capabilities", _HBA_CAPABILITIES),
    ):
        sections[title] = _column(rows, HBA_LAYOUTS, layout)
    sections["Scheduled Tasks"] = "NA"
    sections["Secure Boot"] = _column(_HBA_SECURE, HBA_LAYOUTS, layout)
    sections["Security Protocol properties"] = {"Security Protocol": "None"}
    return {title: section for title, section in sections.items() if section}


#: Rows of "Policies Table" with the state of a MegaRAID card and of an adapter without RAID, and the default; a rate's name differs at HPE.
_POLICY_ROWS = (
    ("Predictive Fail Poll Interval", "300 sec", "0 sec", ""),
    ("Interrupt Throttle Active Count", "16", "0", ""),
    ("Interrupt Throttle Completion", "50 us", "0 us", ""),
    ("Rebuild Rate", "30 %", "0 %", "30%"),
    ("PR Rate", "30 %", "0 %", "30%"),
    ("BGI Rate", "30 %", "0 %", "30%"),
    ("Check Consistency Rate", "30 %", "0 %", "30%"),
    ("Reconstruction Rate", "30 %", "0 %", "30%"),
)


def policies_table(layout: str, flush_interval: str) -> list[Section]:
    """The table with which the section "Policies" begins."""
    place = 2 if layout in HBA_LAYOUTS else 1
    rows = [{"Policy": row[0], "Current": row[place], "Default": row[3]} for row in _POLICY_ROWS]
    if layout == "hpe":
        rows[0]["Current"] = "60 sec"
        rows[-1]["Policy"] = "Transformation Rate"
    return [*rows, {"Policy": "Cache Flush Interval", "Current": flush_interval, "Default": ""}]
