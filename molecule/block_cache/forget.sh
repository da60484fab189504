#!/bin/sh
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Removes a mapping and those it is made of, as a restart of the machine does.
#
# usage: forget.sh NAME
set -eu

below=$(dmsetup deps -o devname "$1" | grep -o '([^)]*)' | tr -d '()')
dmsetup remove --retry "$1"
for part in $below; do
    # Disks below are no mappings.
    if dmsetup info "$part" > /dev/null 2>&1; then
        dmsetup remove --retry "$part"
    fi
done
