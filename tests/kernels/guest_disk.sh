# SPDX-License-Identifier: Apache-2.0
# Sourced by the first process of a guest that has a disk, /dev/vda: on /disk when it is through.
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
mount -t ext4 /dev/vda /disk || { echo "guest: no disk"; poweroff -f; }
echo "guest $(uname -r) up after $(cut -d' ' -f1 /proc/uptime) s"
