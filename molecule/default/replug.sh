#!/bin/sh
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Switches the write caches of two unused drives on behind the back of everybody, pulls the drives and plugs them in again.
# Only a rule that runs when a drive appears can switch them off after this.
set -eu

name=$1
ssd=/dev/disk/by-id/ata-VIRTUAL_SSD_$name-SSD1
nvme=/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_$name-NVME0

hdparm -q -W1 "$ssd"
hdparm -W "$ssd" | grep -q '1 (on)'
disk=$(basename "$(readlink -f "$ssd")")
host=$(readlink -f "/sys/block/$disk/device" | grep -o '/host[0-9]*/' | tr -d /)
echo 1 > "/sys/block/$disk/device/delete"
echo '- - -' > "/sys/class/scsi_host/$host/scan"

controller=$(basename "$(readlink -f "$nvme")" | sed 's/n[0-9]*$//')
nvme set-feature "/dev/$controller" --feature-id=6 --value=1 >/dev/null
pci=$(readlink -f "/sys/class/nvme/$controller/device")
echo 1 > "$pci/remove"
echo 1 > /sys/bus/pci/rescan

udevadm settle
for device in "$ssd" "$nvme"; do
    tries=0
    while [ ! -b "$device" ]; do
        tries=$((tries + 1))
        [ "$tries" -lt 60 ]
        sleep 0.5
    done
done
udevadm settle
