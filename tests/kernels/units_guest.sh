#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# In a guest of units.sh: what is to be seen there, then the attacks that the kernel's command line names.
stty -F /dev/ttyS1 raw 115200
python3 -B tests/kernels/units_guest.py || echo "# units_guest.py: exit status $?"
for name in $(sed -n 's/.*units_guest\.attacks=\([^ ]*\).*/\1/p' /proc/cmdline | tr , ' '); do
	[ "$name" != none ] || continue
	echo "# $name"
	timeout 600 python3 -B tests/kernels/units_attack.py "tests/attacks/${name}_test.py"
	status=$?
	[ $status -le 1 ] || echo "not ok - $name: exit status $status"
done
echo "guest-done"
systemctl --no-block poweroff
