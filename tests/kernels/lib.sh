# SPDX-License-Identifier: Apache-2.0
# Sourced by the scripts that boot guests: TAP, and QEMU without KVM. $work is where a guest's serial ports go.
. tests/tools/tap.sh

# NAME SECONDS VMLINUZ INITRAMFS ARGUMENT…: a guest, until it switches itself off; its first serial port is
# $work/NAME.console, its second $work/NAME.results.
guest() {
	name=$1 seconds=$2 vmlinuz=$3 initramfs=$4
	shift 4
	timeout -k 5 "$seconds" qemu-system-x86_64 -accel tcg,thread=multi -cpu max -smp 2 -no-reboot -nic none \
		-display none -serial "file:$work/$name.console" -serial "file:$work/$name.results" \
		-kernel "$vmlinuz" -initrd "$initramfs" "$@" </dev/null >"$work/$name.qemu" 2>&1
}

# NAME VMLINUZ …: as guest, once more where a run says nothing about what is tested: an emulated machine now and then
# hangs before its first process, or its CPUs go on seeing a breakpoint that the kernel has taken out of its own code.
guest_again() {
	guest "$@"
	if ! grep -q "^guest " "$work/$1.console"; then
		echo "# $1: it did not start its first process; once more"
	elif grep -q "Oops: int3" "$work/$1.console"; then
		echo "# $1: it tripped over a breakpoint of its own, which the emulation kept; once more"
	else
		return
	fi
	guest "$@"
}
