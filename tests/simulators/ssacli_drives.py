# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Kinds of drives of the simulator of ssacli: the lines that the captures show for them, and how much a volume gets of each.

``lines`` are in no order: the tool's order is that of ``ssacli_text.DRIVE_LINES``. ``{unique}`` stands for an invented address.
"""

from __future__ import annotations

from .simulator import State

_GIB = 2**30

SSD_960: State = {
    "media": "SATA SSD",
    "interface": "Solid State SATA",
    "text": "960 GB",
    "usable": 960 * 10**9,
    "lines": {
        "Logical/Physical Block Size": "512/4096",
        "Firmware Revision": "D0MU075",
        "Model": "ATA     MTFDDAK960TCB",
        "SATA NCQ Capable": "True",
        "SATA NCQ Enabled": "True",
        "Current Temperature (C)": "34",
        "Maximum Temperature (C)": "38",
        "Usage remaining": "98.00%",
        "Power On Hours": "45068",
        "SSD Smart Trip Wearout": "False",
        "PHY Count": "1",
        "PHY Transfer Rate": "6.0Gbps",
        "PHY Physical Link Rate": "6.0Gbps",
        "PHY Maximum Link Rate": "6.0Gbps",
        "Drive Authentication Status": "OK",
        "Carrier Application Version": "11",
        "Carrier Bootloader Version": "6",
        "Sanitize Erase Supported": "True",
        "Sanitize Freeze Lock Supported": "True",
        "Sanitize Anti-Freeze Lock Supported": "True",
        "Sanitize Lock": "None",
        "Unrestricted Sanitize Supported": "True",
        "Shingled Magnetic Recording Support": "None",
        "Drive Unique ID": "{unique}",
    },
}
_SAS_GEN10 = {
    "Logical/Physical Block Size": "512/4096",
    "PHY Count": "2",
    "PHY Transfer Rate": "12.0Gbps, Unknown",
    "PHY Physical Link Rate": "12.0Gbps, Unknown",
    "PHY Maximum Link Rate": "12.0Gbps, 12.0Gbps",
    "Drive Authentication Status": "OK",
    "Carrier Application Version": "11",
    "Carrier Bootloader Version": "6",
    "Sanitize Erase Supported": "True",
    "Shingled Magnetic Recording Support": "None",
    "Drive Unique ID": "{unique}",
    "Multi-Actuator Drive": "False",
}
SAS_SSD_800: State = {
    "media": "SAS SSD",
    "interface": "Solid State SAS",
    "text": "800 GB",
    "usable": int(745.18 * _GIB),
    "lines": {
        **_SAS_GEN10,
        "Firmware Revision": "HPD1",
        "Model": "HPE     MO000800JXBEV",
        "Current Temperature (C)": "51",
        "Maximum Temperature (C)": "58",
        "Usage remaining": "93.35%",
        "Power On Hours": "28293",
        "Estimated Life Remaining based on workload to date": "16548 days",
        "SSD Smart Trip Wearout": "False",
        "Sanitize Estimated Max Erase Time": "10 minute(s), 0 second(s) ",
        "Unrestricted Sanitize Supported": "False",
    },
}
SAS_HDD_6000: State = {
    "media": "SAS HDD",
    "interface": "SAS",
    "text": "6 TB",
    "usable": 6001 * 10**9,
    "lines": {
        **_SAS_GEN10,
        "Rotational Speed": "7200",
        "Firmware Revision": "HPD4",
        "Model": "HP      MB6000JVYZD",
        "Current Temperature (C)": "33",
        "Maximum Temperature (C)": "45",
        "Sanitize Estimated Max Erase Time": "11 hour(s), 40 minute(s) ",
        "Unrestricted Sanitize Supported": "True",
    },
}
_OLD_SATA = {
    "SATA NCQ Capable": "True",
    "SATA NCQ Enabled": "True",
    "PHY Count": "1",
    "Sanitize Erase Supported": "False",
    "Shingled Magnetic Recording Support": "None",
}
_GEN9_CARRIER = {
    "PHY Transfer Rate": "6.0Gbps",
    "Drive Authentication Status": "OK",
    "Carrier Application Version": "11",
    "Carrier Bootloader Version": "6",
    "Logical/Physical Block Size": "512/4096",
}
SATA_SSD_1900: State = {
    "media": "SATA SSD",
    "interface": "Solid State SATA",
    "text": "1.9 TB",
    "usable": 1920 * 10**9,
    "lines": {
        **_OLD_SATA,
        **_GEN9_CARRIER,
        "Firmware Revision": "XCV10110",
        "Model": "ATA     INTEL SSDSC2KB01",
        "Current Temperature (C)": "27",
        "Maximum Temperature (C)": "33",
        "SSD Smart Trip Wearout": "Not Supported",
    },
}
SATA_HDD_1000: State = {
    "media": "SATA HDD",
    "interface": "SATA",
    "text": "1 TB",
    "usable": 1000204886016,
    "lines": {
        **_OLD_SATA,
        **_GEN9_CARRIER,
        "Rotational Speed": "5400",
        "Firmware Revision": "2BA30001",
        "Model": "ATA     ST1000LM024 HN-M",
        "Current Temperature (C)": "30",
        "Maximum Temperature (C)": "35",
    },
}
SATA_100: State = {
    "media": "SATA HDD",
    "interface": "SATA",
    "text": "100 GB",
    "usable": 99_998_000_000,
    "lines": {
        **_OLD_SATA,
        "Logical/Physical Block Size": "512/512",
        "Firmware Revision": "6PB10362",
        "Model": "ATA     INTEL SSDSA2BZ10",
        "Current Temperature (C)": "23",
        "Maximum Temperature (C)": "32",
        "PHY Transfer Rate": "1.5Gbps",
    },
}
SATA_250: State = {**SATA_100, "text": "250 GB", "usable": 250 * 10**9}
SAS_HDD_146: State = {
    "media": "SAS HDD",
    "interface": "SAS",
    "text": "146 GB",
    "usable": int(136.7023 * _GIB),
    "lines": {
        "Logical/Physical Block Size": "512/512",
        "Rotational Speed": "15000",
        "Firmware Revision": "HPDF",
        "Model": "HP      EH0146FAWJB",
        "Current Temperature (C)": "36",
        "Maximum Temperature (C)": "43",
        "PHY Count": "2",
        "PHY Transfer Rate": "6.0Gbps, Unknown",
        "Sanitize Erase Supported": "False",
        "Shingled Magnetic Recording Support": "None",
    },
}
