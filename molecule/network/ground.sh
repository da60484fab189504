#!/bin/sh
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# What is below the scenario: eth1 belongs to systemd-networkd on node1 and to ifupdown on node2, or to none as before.
#
# usage: ground.sh prepare|reboot|cleanup MACHINE DISK
set -eu

kept=/var/lib/cachefleet-network
disk=$3

prepare_node1() {
    mkdir -p "$kept"
    [ -e "$kept/write-cache" ] || hdparm -W "$disk" | sed -n 's/.*write-caching = *\([01]\).*/\1/p' >"$kept/write-cache"
    printf '[Match]\nName=eth1\n\n[Network]\nAddress=192.168.77.1/24\nLinkLocalAddressing=no\n' >/etc/systemd/network/20-storage.network
    systemctl start systemd-networkd
}

prepare_node2() {
    mkdir -p "$kept"
    [ -e "$kept/interfaces" ] || cp -p /etc/network/interfaces "$kept/interfaces"
    printf '\n# The storage network.\nauto eth1\niface eth1 inet static\n    address 192.168.77.2/24\n' |
        cat "$kept/interfaces" - >"$kept/interfaces.prepared"
    cp "$kept/interfaces.prepared" /etc/network/interfaces
}

# What a boot would do with the interface, after its MTU was changed by hand.
reboot_node1() {
    ip link set eth1 mtu 1500
    networkctl reload
    networkctl reconfigure eth1
}

reboot_node2() {
    ip address flush dev eth1
    ip link set eth1 mtu 1500
    ifup --force eth1
}

cleanup_node1() {
    systemctl stop systemd-networkd.socket systemd-networkd.service
    rm -rf /etc/systemd/network/20-storage.network /etc/systemd/network/20-storage.network.d
    dd if=/dev/zero of="$disk" bs=1M count=64 oflag=direct status=none
    hdparm -q -W "$(cat "$kept/write-cache")" "$disk"
    back 192.168.77.1
}

cleanup_node2() {
    # Linux 5.10 (Debian 11) has a bug in the code that both run: it oopsed in sbitmap_queue_wake_all, and ended aoe-flush.
    case $(uname -r) in
        5.10.*) ;;
        *)
            aoe-flush -a
            rmmod aoe
            ;;
    esac
    rm -f /etc/modprobe.d/cachefleet-aoe.conf /etc/modules-load.d/cachefleet-aoe.conf /run/network/ifstate.eth1
    ln -sfn /dev/null /etc/systemd/system/aoe-discover.service
    systemctl daemon-reload
    cp -p "$kept/interfaces" /etc/network/interfaces
    back 192.168.77.2
}

back() {
    rm -rf "$kept"
    ip link set eth1 mtu 1500 up
    ip address replace "$1/24" dev eth1
}

"$1_$2"
