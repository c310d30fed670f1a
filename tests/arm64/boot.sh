# SPDX-License-Identifier: Apache-2.0
# Sourced by run.sh: Debian's arm64 kernel under QEMU with the agent and programs of known shape, as in tests/kernels,
# whose guest script and checks these are. Return addresses of the programs are signed.

make_initramfs() { # OUT
	guest=$(mktemp -d) || return 1
	mkdir -p "$guest/bin" "$guest/dev" "$guest/proc" "$guest/sys" "$guest/tmp" "$guest/etc" "$guest/lib"
	cp "$root/bin/busybox" "$guest/bin/busybox"
	# One serial port: the profile comes by the console, its lines marked.
	sed "s/>\/dev\/ttyS1/| sed 's,^,profile ,'/" tests/kernels/init.sh >"$guest/init"
	chmod 755 "$guest/init"
	cp "$built/farflame-agent" "$guest/"
	cp "$work"/programs/* "$guest/"
	for library in ld-linux-aarch64.so.1 libc.so.6 libdl.so.2 libm.so.6 libpthread.so.0 libgcc_s.so.1; do
		cp -L $libc/lib/$library "$guest/lib/"
	done
	(cd "$guest" && find . | cpio -o -H newc --quiet | gzip -1) >"$1"
	rm -rf "$guest"
}

boot_kernel() { # VMLINUZ
	timeout -k 5 570 qemu-system-aarch64 -M virt -accel tcg,thread=multi -cpu max,pauth-impdef=on -smp 2 -m 1024 -no-reboot \
		-nic none -display none -serial "file:$work/console" -kernel "$1" -initrd "$work/initramfs.gz" \
		-append "console=ttyAMA0 panic=-1 quiet loglevel=3" </dev/null >"$work/qemu.log" 2>&1
}

build_programs() {
	mkdir -p "$work/tools" "$work/programs"
	# The programs' builders call cc, with an option that is x86's.
	cat >"$work/tools/cc" <<-'CC'
		#!/bin/sh
		for option; do
			shift
			[ "$option" = -fcf-protection=none ] || set -- "$@" "$option"
		done
		exec aarch64-linux-gnu-gcc -mbranch-protection=standard "$@"
	CC
	chmod 755 "$work/tools/cc"
	PATH=$work/tools:$PATH sh tests/programs/build.sh "$work/programs" chain_pie chain_static chain_thread syscall_loop &&
		PATH=$work/tools:$PATH sh tests/programs/unwind/build.sh "$work/programs" deep deep_static signals
}

check_boot() {
	if ! command -v qemu-system-aarch64 >/dev/null; then
		skip "an arm64 kernel: needs qemu-system-arm"
		return
	fi
	if ! why=$(sh tests/arm64/fetch.sh "$work/debian" kernel busybox-static 2>&1); then
		skip "an arm64 kernel: $why"
		return
	fi
	build_programs >"$work/programs.log" 2>&1 && make_initramfs "$work/initramfs.gz"
	result $? "programs of known shape compile" "$work/programs.log"
	kernel=$(sed 's/^linux-image-//' "$work/debian/unpacked/kernel")
	started=$(date +%s)
	rm -f "$work/console"
	boot_kernel "$root/boot/vmlinuz-$kernel"
	tr -d '\r' <"$work/console" >"$work/console.text"
	grep -q '^guest-done' "$work/console.text"
	result $? "kernel $kernel runs to the end ($(($(date +%s) - started)) s)" "$work/qemu.log"
	grep -q '^check-status 0' "$work/console.text"
	result $? "kernel $kernel: --check finds nothing in the way"
	grep -q '^agent-status 0' "$work/console.text"
	result $? "kernel $kernel: the agent profiles and ends well"
	! grep '^warn stacks are taken by perf events' "$work/console.text" >"$work/no_bpf.log"
	result $? "kernel $kernel: stacks are walked by BPF"
	sed 's/^/# /' "$work/no_bpf.log"
	sed -n 's/^profile //p' "$work/console.text" | base64 -di 2>/dev/null | gzip -dc >"$work/boot.otlp" 2>/dev/null
	result $? "kernel $kernel: the profile came back"
	/usr/bin/python3 -B tests/kernels/check_stacks.py "$work" "$work/boot.otlp" "$work/console.text" >"$work/boot.checks" 2>&1 ||
		echo "not ok check_stacks.py failed: $(tail -n 1 "$work/boot.checks")" >>"$work/boot.checks"
	while read -r line; do
		case $line in
		"ok "*) result 0 "kernel $kernel: ${line#ok }" ;;
		"not ok "*) result 1 "kernel $kernel: ${line#not ok }" ;;
		*) echo "# $line" ;;
		esac
	done <"$work/boot.checks"
}

check_boot
