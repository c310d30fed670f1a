#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# sh tests/kernels/run.sh BUILD [KERNEL…]: boots other kernels under QEMU (no KVM needed) with an initramfs that
# holds the agent and programs of known shape, and checks on this side, by nm, that the stacks it
# took there are right. KERNEL: 5.10 6.1 6.12 6.18 newest all; default: the oldest and the newest. BUILD and
# KERNELS may also come from the environment.
# Prints TAP. Downloaded kernels are kept in BUILD/kernels.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/kernels/lib.sh

make_initramfs() { # OUT
	root=$(mktemp -d) || exit 1
	mkdir -p "$root/bin" "$root/dev" "$root/proc" "$root/sys" "$root/tmp" "$root/etc"
	cp "$(command -v busybox)" "$root/bin/busybox"
	cp tests/kernels/init.sh "$root/init"
	chmod 755 "$root/init"
	cp "$build/farflame-agent" "$root/"
	for program in chain_pie chain_static chain_thread syscall_loop deep deep_static signals waits takes touches; do
		cp "$build/programs/$program" "$root/"
	done
	for program in go_memory go_labels; do
		[ ! -x "$work/$program" ] || cp "$work/$program" "$root/"
	done
	# What the programs load, at the same places.
	ldd "$build/farflame-agent" "$build/programs/chain_thread" "$build/programs/deep" | grep -o '/[^ ]*' | grep '\.so' | sort -u |
		while read -r library; do
			mkdir -p "$root$(dirname "$library")"
			cp -L "$library" "$root$library"
		done
	(cd "$root" && find . | cpio -o -H newc --quiet | gzip -1) >"$1"
	rm -rf "$root"
}

check_kernel() { # KERNEL VMLINUZ RELEASE
	started=$(date +%s)
	rm -f "$work/$1".console "$work/$1".results "$work/$1".otlp
	guest_again "$1" 900 "$2" "$work/initramfs.gz" -m 1024 -append "console=ttyS0 panic=-1 quiet loglevel=3"
	if ! grep -q "^guest-done" "$work/$1.console"; then
		result 1 "kernel $3 runs to the end"
		tail -n 20 "$work/$1.console" "$work/$1.qemu" 2>/dev/null | sed 's/^/# /'
		return
	fi
	result 0 "kernel $3 runs to the end ($(($(date +%s) - started)) s)"
	grep -q '^check-status 0' "$work/$1.console"
	result $? "kernel $3: --check finds nothing in the way"
	grep -q '^agent-status 0' "$work/$1.console"
	result $? "kernel $3: the agent profiles and ends well"
	grep -q '^off-cpu-status 0' "$work/$1.console" &&
		grep -q '^off-cpu-log info waits waits=[1-9][0-9]* exact_s=[1-9][0-9]* covered_s=[1-9]' "$work/$1.console"
	result $? "kernel $3: threads off their CPU are followed"
	grep '^off-cpu-log' "$work/$1.console" | sed 's/^/# /'
	if [ -x "$work/go_labels" ]; then
		grep -q '^labels-log info contexts .* located=1 .* samples=[1-9]' "$work/$1.console"
		result $? "kernel $3: samples have the labels of a Go program's goroutines"
		grep '^labels-log' "$work/$1.console" | sed 's/^/# /'
	fi
	grep -q '^page-fault-status 0' "$work/$1.console" &&
		grep -q '^page-fault-log info page faults minor=[1-9][0-9]* major=[0-9]* stacks=[1-9]' "$work/$1.console"
	result $? "kernel $3: page faults are sampled"
	grep '^page-fault-log' "$work/$1.console" | sed 's/^/# /'
	if [ -x "$work/go_memory" ]; then
		grep -q '^memory-status 0' "$work/$1.console" &&
			grep -q '^memory-log info memory programs=[1-9] processes=[1-9] stacks=[1-9][0-9]* stacks_lost=0 frees=[1-9]' "$work/$1.console"
		result $? "kernel $3: a Go program's memory is profiled"
		# A stall of the emulated machine may lose some, which is said; most come.
		awk -F'[= ]' '/^memory-log info allocations/ { for (i = 1; i < NF; i++) is[$i] = $(i + 1) }
			END { exit !(is["samples"] > 10 * is["lost"] && is["hits"] > 0) }' "$work/$1.console"
		result $? "kernel $3: what a program in C allocates is seen without touching it"
		grep '^memory-log' "$work/$1.console" | sed 's/^/# /'
	else
		skip "kernel $3: no Go compiler"
	fi
	if ! base64 -di "$work/$1.results" 2>/dev/null | gzip -dc >"$work/$1.otlp" 2>/dev/null; then
		result 1 "kernel $3: the profile came back"
		grep -vE '^kallsyms' "$work/$1.console" | tail -n 25 | sed 's/^/# /'
		return
	fi
	/usr/bin/python3 -B tests/kernels/check_stacks.py "$build" "$work/$1.otlp" "$work/$1.console" >"$work/$1.checks" 2>&1 ||
		echo "not ok check_stacks.py failed: $(tail -n 1 "$work/$1.checks")" >>"$work/$1.checks"
	while read -r line; do
		case $line in
		"ok "*) result 0 "kernel $3: ${line#ok }" ;;
		"not ok "*) result 1 "kernel $3: ${line#not ok }" ;;
		*) echo "# $line" ;;
		esac
	done <"$work/$1.checks"
}

if [ "$(uname -m)" != x86_64 ] || ! command -v qemu-system-x86_64 >/dev/null || ! command -v busybox >/dev/null; then
	echo "1..0 # SKIP needs x86_64 with qemu-system-x86 and busybox-static"
	exit 0
fi
sh tests/programs/build.sh "$build/programs" chain_pie chain_static chain_thread syscall_loop waits takes touches || exit 1
sh tests/programs/unwind/build.sh "$build/programs" deep deep_static signals || exit 1
go=$(command -v go || ls /usr/lib/go-*/bin/go 2>/dev/null | head -n 1)
for program in go_memory go_labels; do
	out=$(realpath "$work")/$program
	rm -f "$out"
	[ -z "$go" ] || (cd "tests/programs/$program" && CGO_ENABLED=0 GO111MODULE=off GOFLAGS='' GOTOOLCHAIN=local \
		"$go" build -o "$out" .) || exit 1
done
make_initramfs "$work/initramfs.gz"
check_kernels check_kernel "$@"
