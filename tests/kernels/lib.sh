# SPDX-License-Identifier: Apache-2.0
# Sourced by the scripts that boot guests, [BUILD [KERNEL…]]: $build, $@ the kernels, $work where they and a guest's
# serial ports go; TAP; QEMU without KVM.
. tests/tools/tap.sh
build=${1:-${BUILD:-build}}
[ $# -eq 0 ] || shift
# shellcheck disable=SC2086
[ $# -gt 0 ] || set -- ${KERNELS:-5.10 newest}
[ "$*" != all ] || set -- 5.10 6.1 6.12 6.18 newest
work=$build/kernels
mkdir -p "$work"
work=$(cd "$work" && pwd)

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

# CHECK KERNEL…: runs CHECK KERNEL VMLINUZ RELEASE for each that can be had, and ends the TAP.
check_kernels() {
	check=$1
	shift
	sh tests/kernels/fetch.sh "$work" "$@" >"$work/$check.list"
	while read -r kernel path release; do
		if [ "$path" = missing ]; then
			skip "kernel $kernel: $release"
		else
			"$check" "$kernel" "$path" "$release"
		fi
	done <"$work/$check.list"
	echo "1..$number"
	[ "$bad" -eq 0 ]
}
