#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# sh tests/kernels/units.sh BUILD [KERNEL…]: boots a Debian 12 with other kernels under QEMU (no KVM needed), in which
# systemd starts what "make install" puts there: both units, with the configuration as it is shipped.
# units_guest.py looks at them there; some of tests/attacks are run against them as well. KERNEL: as for run.sh; default: the
# oldest and the newest. ATTACKS="agent_files …" chooses, ATTACKS=none leaves them out; those that measure times fail
# in a machine as slow as an emulated one.
# As root, for debootstrap. Prints TAP. Kernels and the Debian are kept in BUILD/kernels.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/kernels/lib.sh
attacks=${ATTACKS:-agent_files server_http}
modules="virtio_ring virtio virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci virtio_blk crc16 crc32c_generic libcrc32c
	mbcache jbd2 ext4"
units="farflame-server.service farflame-agent.service"

packages() { # what the guest needs besides a minimal system: the programs' libraries, and what tests are made of
	echo systemd-sysv dbus python3 python3-protobuf protobuf-compiler gcc libc6-dev binutils bpftool
	ldd "$build/farflame-agent" "$build/farflame-server" | grep -o '=> /[^ ]*' | cut -c4- | sort -u |
		while read -r library; do
			dpkg-query -S "$library" 2>/dev/null || dpkg-query -S "/usr$library" 2>/dev/null
		done | cut -d: -f1 | sort -u
}

# Neither is ever a folder below BUILD, where make looks for files of its own.
make_debian() {
	packages >"$work/debian12.wanted"
	if cmp -s "$work/debian12.wanted" "$work/debian12.packages" && [ -s "$work/debian12.tar" ]; then return 0; fi
	root=$(mktemp -d) || exit 1
	# shellcheck disable=SC2046
	debootstrap --variant=minbase --include="$(echo $(cat "$work/debian12.wanted") | tr ' ' ,)" bookworm "$root" \
		"$(sh tests/kernels/fetch.sh --mirror)/debian" >"$work/debootstrap.log" 2>&1 &&
		rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/* &&
		tar -C "$root" -cf "$work/debian12.tar" . && mv "$work/debian12.wanted" "$work/debian12.packages"
	made=$?
	rm -rf "$root"
	return $made
}

# A disk with the Debian, what "make install" adds, the tests, and the unit that runs them.
make_disk() {
	root=$(mktemp -d) || exit 1
	rm -f "$work/units.ext4"
	tar -C "$root" -xf "$work/debian12.tar" &&
		make -s --no-print-directory BUILD="$build" DESTDIR="$root" install >"$work/install.log" 2>&1 &&
		mkdir -p "$root/opt/farflame/build/programs" &&
		cp -r tests deploy schema "$root/opt/farflame/" &&
		cp "$build/farflame-agent" "$build/farflame-server" "$root/opt/farflame/build/" &&
		cp "$build/programs/chain_pie" "$root/opt/farflame/build/programs/" &&
		cp tests/kernels/units_guest.service "$root/etc/systemd/system/" &&
		echo guest >"$root/etc/hostname" &&
		printf '127.0.0.1 localhost guest\n' >"$root/etc/hosts" &&
		# shellcheck disable=SC2086
		systemctl -q --root="$root" enable $units units_guest.service &&
		systemctl -q --root="$root" mask serial-getty@ttyS0.service console-getty.service getty@tty1.service &&
		chown -R root:root "$root/opt" && chmod 755 "$root" &&
		truncate -s 2G "$work/units.ext4" &&
		mkfs.ext4 -q -F -E lazy_itable_init=0,nodiscard -d "$root" "$work/units.ext4"
	made=$?
	rm -rf "$root"
	return $made
}

make_initramfs() { # MODULES OUT: finds the disk
	root=$(mktemp -d) || exit 1
	mkdir -p "$root/bin" "$root/dev" "$root/proc" "$root/sys" "$root/disk" "$root/modules"
	cp "$(command -v busybox)" "$root/bin/busybox"
	cp tests/kernels/units_init.sh "$root/init"
	chmod 755 "$root/init"
	cp tests/kernels/guest_disk.sh "$root/"
	for module in $modules; do
		find "$1" -name "$module.ko*" | head -n 1 | while read -r file; do
			case $file in
			*.xz) xz -dc "$file" >"$root/modules/$module.ko" ;;
			*) cp "$file" "$root/modules/$module.ko" ;;
			esac
			echo "$module.ko" >>"$root/modules/order"
		done
	done
	(cd "$root" && find . | cpio -o -H newc --quiet | gzip -1) >"$2"
	rm -rf "$root"
}

check_units() { # KERNEL VMLINUZ RELEASE
	started=$(date +%s)
	name=units-$1
	make_initramfs "$work/$1/modules" "$work/$name.gz"
	guest_again "$name" 1800 "$2" "$work/$name.gz" -m 2048 \
		-drive "file=$work/units.ext4,if=virtio,format=raw,snapshot=on" \
		-append "console=ttyS0 panic=-1 quiet loglevel=3 systemd.journald.forward_to_console=1 units_guest.attacks=$(
			echo $attacks | tr ' ' ,)"
	tr -d '\r' <"$work/$name.results" >"$work/$name.tap"
	while read -r line; do
		case $line in
		*"# SKIP"*) skip "kernel $3: ${line#*# SKIP }" ;;
		"ok "*) result 0 "kernel $3: ${line#ok * - }" ;;
		"not ok "*) result 1 "kernel $3: ${line#not ok * - }" ;;
		"#"*) echo "$line" ;;
		esac
	done <"$work/$name.tap"
	grep -q '^guest-done' "$work/$name.tap"
	result $? "kernel $3: the guest's tests run to their end ($(($(date +%s) - started)) s)"
	grep -q 'guest-done' "$work/$name.tap" || tail -n 30 "$work/$name.console" "$work/$name.qemu" | sed 's/^/# /'
	grep -q 'reboot: Power down\|System Power Off' "$work/$name.console"
	result $? "kernel $3: and it is switched off as any other"
}

for program in qemu-system-x86_64 busybox cpio mkfs.ext4 debootstrap systemctl; do
	if [ "$(uname -m)" != x86_64 ] || [ "$(id -u)" != 0 ] || ! command -v "$program" >/dev/null; then
		echo "1..0 # SKIP needs root, x86_64, qemu-system-x86, busybox-static, cpio, e2fsprogs, debootstrap and systemd"
		exit 0
	fi
done
sh tests/programs/build.sh "$build/programs" chain_pie || exit 1
if ! make_debian; then
	echo "1..0 # SKIP no Debian 12 could be had: $(tail -n 1 "$work/debootstrap.log")"
	exit 0
fi
make_disk || exit 1
export KEEP_MODULES=1
check_kernels check_units "$@"
