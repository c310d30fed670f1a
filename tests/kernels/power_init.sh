#!/bin/busybox sh
# SPDX-License-Identifier: Apache-2.0
# The first process of a guest that loses its power: mounts the disk, serves until it is gone. Its one clock is the
# machine's; its one disk is /dev/vda.
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev 2>/dev/null
for module in $(cat /modules/order); do
	insmod "/modules/$module" || echo "guest: no module $module"
done
for _ in 1 2 3 4 5 6 7 8 9 10; do
	[ -b /dev/vda ] && break
	sleep 0.2
done
ip link set lo up
ip addr add 10.0.2.15/24 dev eth0
ip link set eth0 up
ip route add default via 10.0.2.2
mkdir -p /disk
mount -t ext4 /dev/vda /disk || { echo "guest: no disk"; poweroff -f; }
echo "guest up after $(cut -d' ' -f1 /proc/uptime) s"
/farflame-server --insecure --listen 0.0.0.0:7878 --data /disk/farflame
echo "guest: the server ended with $?"
sync
poweroff -f
