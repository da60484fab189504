#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Runs on the machine of site_kills.py and site_undo.py.
#
# usage: ground.sh prepare|reset|begin ...|verify
#   prepare   a new machine: a volume with a file system on the slow disk, a volume beside it, a disk that is in no list, a network, RAID controllers
#   reset     as it was prepared, apart from what is fenced: the contents of the file system, of the volume beside it, and of the disk
#   begin HDD SSD1 NVME AHEAD AHEAD SCHEDULER SCHEDULER MTU    other settings to begin with: drive caches 0 or 1, the queues of ssd0 and hdd0, eth1
#   verify    whether what is fenced is intact; it prints "intact"
set -euo pipefail

hdd=/dev/disk/by-id/ata-VIRTUAL_HDD_NODE1-HDD0
ssd=/dev/disk/by-id/ata-VIRTUAL_SSD_NODE1-SSD0
beside=/dev/disk/by-id/ata-VIRTUAL_SSD_NODE1-SSD1
nvme=/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_NODE1-NVME0
kept=/var/lib/cachefleet-ground
state=/var/lib/cachefleet-simulators

fence() { # the devices, whatever is above or below them
    sha256sum /dev/vg0/beside /dev/vg0/spare
    head --bytes=64M "$beside" | sha256sum
}

mounted() {
    mountpoint --quiet /mnt/data || mount /dev/vg0/data /mnt/data
}

reloaded() { # a table that was loaded while the cache of its disk was off drops flushes, and nobody's state before begins with that
    for volume in $(dmsetup ls | cut --fields=1); do
        dmsetup table "$volume" | dmsetup reload "$volume"
        dmsetup suspend "$volume"
        dmsetup resume "$volume"
    done
}

case $1 in
prepare)
    mkdir -p "$kept" /mnt/data
    pvcreate --yes "$hdd"
    vgcreate vg0 "$hdd"
    lvcreate --yes --size 1G --name data vg0
    lvcreate --yes --size 64M --name beside vg0
    # An origin for dm_cache, and a backing device without a cache.
    lvcreate --yes --size 128M --name spare vg0
    lvcreate --yes --size 128M --name plain vg0
    dd if=/dev/urandom of=/dev/vg0/spare bs=1M count=128 oflag=direct status=none
    make-bcache --wipe-bcache -B /dev/vg0/plain
    mkfs.ext4 -q /dev/vg0/data
    mounted
    dd if=/dev/urandom of=/mnt/data/file bs=1M count=96 status=none
    dd if=/dev/urandom of=/dev/vg0/beside bs=1M count=64 oflag=direct status=none
    dd if=/dev/urandom of="$beside" bs=1M count=64 oflag=direct status=none
    (cd /mnt/data && sha256sum file) >"$kept/file"
    printf '[Match]\nName=eth1\n\n[Network]\nAddress=192.168.77.1/24\nLinkLocalAddressing=no\n' >/etc/systemd/network/20-storage.network
    systemctl enable --now systemd-networkd
    networkctl reload
    # The volume 0 of the simulated MegaRAID card is the disk that QEMU's card really has, at 0000:00:06.0.
    (cd /opt/cachefleet && python3 -m simulators install &&
        python3 -m simulators add storcli 'MegaRAID 9361-8i' --option 'volumes=2' --option 'os_devices=[{"path": "/dev/sdx"}, {"path": "/dev/sdy"}]' \
            --set bus=0 --set device=6 &&
        python3 -m simulators add arcconf 'Adaptec ASR-81605ZQ' --option volumes=2 --option drives=8)
    cp --archive "$state" "$kept/simulators"
    cp --archive /etc/systemd/network "$kept/network"
    fence >"$kept/fence"
    sync
    ;;
begin)
    hdparm -q "-W$2" "$hdd"
    hdparm -q "-W$3" "$beside"
    controller=$(realpath "$nvme")
    nvme set-feature "${controller%n[0-9]*}" --feature-id=6 --value="$4" >/dev/null
    echo "$5" >"/sys/class/block/$(basename "$(realpath "$ssd")")/queue/read_ahead_kb"
    echo "$6" >"/sys/class/block/$(basename "$(realpath "$hdd")")/queue/read_ahead_kb"
    echo "$7" >"/sys/class/block/$(basename "$(realpath "$ssd")")/queue/scheduler"
    echo "$8" >"/sys/class/block/$(basename "$(realpath "$hdd")")/queue/scheduler"
    ip link set eth1 mtu "$9"
    reloaded
    ;;
reset)
    [ -z "$(lvs --noheadings --options pool_lv vg0/data | tr -d ' ')" ] || lvconvert --yes --uncache vg0/data
    systemctl disable --now --quiet 'cachefleet-*' 2>/dev/null || true
    [ ! -e /dev/mapper/data ] || dmsetup remove data
    [ ! -e /sys/block/bcache0/bcache/cache ] || echo 1 >/sys/block/bcache0/bcache/detach
    for set in /sys/fs/bcache/*-*; do [ ! -e "$set" ] || echo 1 >"$set/stop"; done
    rm -rf /etc/systemd/system/cachefleet-* /etc/systemd/system/*.wants/cachefleet-* /var/lib/cachefleet /run/cachefleet.storage
    systemctl daemon-reload
    for pv in $(pvs --noheadings --options pv_name --select vg_name=vg0 | grep -v "^ *$(realpath "$hdd") *\$" || true); do
        vgreduce vg0 "$pv"
        pvremove --yes "$pv"
    done
    wipefs --all --quiet "$ssd"
    blkdiscard --zeroout "$ssd"
    rm -f /etc/udev/rules.d/99-cachefleet-*
    rm -rf "$state" /etc/systemd/network
    cp --archive "$kept/simulators" "$state"
    cp --archive "$kept/network" /etc/systemd/network
    udevadm control --reload
    networkctl reload
    ip link set eth1 mtu 1500
    hdparm -q -W1 "$hdd" "$beside"
    controller=$(realpath "$nvme")
    nvme set-feature "${controller%n[0-9]*}" --feature-id=6 --value=1 >/dev/null
    for disk in "$ssd" "$hdd"; do
        queue=/sys/class/block/$(basename "$(realpath "$disk")")/queue
        echo 128 >"$queue/read_ahead_kb"
        echo none >"$queue/scheduler"
    done
    mounted
    sync
    ;;
verify)
    fence | cmp - "$kept/fence"
    echo 3 >/proc/sys/vm/drop_caches
    mounted
    (cd /mnt/data && sha256sum --quiet --check "$kept/file")
    echo intact
    ;;
esac
