#!/bin/sh
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Two ways behind this machine, in network namespaces: one over a router whose next link has an MTU of 1500, which the router says,
# and one over a switch with a port of 1500, which says nothing.
#
#   eth1 -- this machine -- 10.77.1.2 router 10.77.2.1 --1500-- 10.77.2.2 end
#                       \-- switch --1500-- 10.77.3.2 end
#
# usage: hops.sh up|down
set -eu

link() { # NAMESPACE NAME NAMESPACE NAME MTU
    ip link add "$2" netns "$1" mtu "$5" type veth peer name "$4" netns "$3" mtu "$5"
    ip -n "$1" link set "$2" up
    ip -n "$3" link set "$4" up
}

down() {
    for name in router switch end; do
        if [ -e "/run/netns/$name" ]; then ip netns del "$name"; fi
    done
    if [ -e /run/hops-forward ]; then
        cat /run/hops-forward >/proc/sys/net/ipv4/ip_forward
        rm /run/hops-forward
    fi
}

up() {
    down
    cat /proc/sys/net/ipv4/ip_forward >/run/hops-forward
    echo 1 >/proc/sys/net/ipv4/ip_forward
    for name in router switch end; do ip netns add "$name"; done
    # The namespace of this machine needs a name for ip link.
    ip netns attach here $$
    trap 'ip netns del here' EXIT
    link here hop1 router up1 9000
    link router down1 end far1 1500
    link here hop2 switch port1 9000
    link switch port2 end far2 9000
    ip -n switch link add bridge type bridge
    ip -n switch link set port1 master bridge
    ip -n switch link set port2 master bridge
    ip -n switch link set bridge up
    ip -n switch link set port2 mtu 1500
    ip address add 10.77.1.1/24 dev hop1
    ip address add 10.77.3.1/24 dev hop2
    ip -n router address add 10.77.1.2/24 dev up1
    ip -n router address add 10.77.2.1/24 dev down1
    ip -n end address add 10.77.2.2/24 dev far1
    ip -n end address add 10.77.3.2/24 dev far2
    ip netns exec router sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
    ip route add 10.77.2.0/24 via 10.77.1.2
    ip -n router route add default via 10.77.1.1
    ip -n end route add 10.77.1.0/24 via 10.77.2.1
    # The answer goes back the way that the question came.
    ip -n end route add default via 10.77.2.1 src 10.77.2.2
    ip -n end rule add from 10.77.3.2 table 100
    ip -n end route add default via 10.77.3.1 table 100
}

"$1"
