#!/bin/sh
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Pulls a SATA drive, as by hand, or plugs it in again.
#
# usage: pull.sh out|in DISK
set -eu

note=/run/cachelife-host
case $1 in
    out)
        disk=$(basename "$(readlink -f "$2")")
        readlink -f "/sys/block/$disk/device" | grep -o '/host[0-9]*/' | tr -d / > "$note"
        echo 1 > "/sys/block/$disk/device/delete"
        udevadm settle
        test ! -e "$2"
        ;;
    in)
        echo '- - -' > "/sys/class/scsi_host/$(cat "$note")/scan"
        tries=0
        while [ ! -b "$2-part3" ]; do
            tries=$((tries + 1))
            [ "$tries" -lt 120 ]
            sleep 0.5
        done
        udevadm settle
        ;;
esac
