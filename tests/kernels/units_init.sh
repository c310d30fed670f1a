#!/bin/busybox sh
# SPDX-License-Identifier: Apache-2.0
# Gives the machine to the systemd of its disk.
. /guest_disk.sh
umount /proc /sys
exec switch_root /disk /sbin/init
