# SPDX-License-Identifier: Apache-2.0
# The Debian 12 packages this project needs, one list for quickstart and tests. Sourced, not run:
#   . deploy/packages.sh; install_packages $packages_build
# What the list gives is everything: nothing is fetched from anywhere else.

packages_build="ca-certificates gcc g++ make libc6-dev clang bpftool esbuild gzip
	libbpf-dev libelf-dev zlib1g-dev libprotobuf-c-dev protobuf-c-compiler protobuf-compiler
	nettle-dev libseccomp-dev libssl-dev libmicrohttpd-dev libsqlite3-dev libcurl4-openssl-dev
	libzstd-dev libdeflate-dev libre2-dev libiberty-dev liblzma-dev libcjson-dev"
packages_quickstart="$packages_build curl jq procps libc6-dbg"
packages_tests="$packages_quickstart clang-format-14 libclang-rt-14-dev python3 python3-protobuf binutils
	elfutils debuginfod gdb llvm-19 lld linux-perf strace rustc golang-go default-jdk-headless nodejs file util-linux iproute2
	qemu-system-x86 qemu-utils dwz seabios busybox-static cpio kmod chromium clickhouse-server sqlite3 xz-utils
	libtcmalloc-minimal4 libjemalloc2 prometheus systemd openssl
	libpython3.11 python3-greenlet musl-tools erlang-base"
# Some packages of nodejs bring npm with them, and then Debian's own cannot be installed.
command -v npm >/dev/null || packages_tests="$packages_tests npm"
# 300 MB of disk; the last one, 44 MB of it, only for the booted kernel.
packages_arm64="gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user qemu-system-arm"
# For make check-units, besides packages_tests.
packages_units="debootstrap e2fsprogs"

# Prints those of its arguments that are not installed.
missing_packages() {
	for package; do
		dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null | grep -q '^.i' || echo "$package"
	done
}

# Installs what is missing; says what went wrong in one sentence on stderr, the whole story in the file
# named by PACKAGES_LOG.
install_packages() {
	PACKAGES_LOG=${PACKAGES_LOG:-/dev/null}
	missing=$(missing_packages "$@")
	[ -n "$missing" ] || return 0
	if [ "$(id -u)" -ne 0 ]; then
		echo "Packages are missing and only root can install them: $(echo $missing)" >&2
		return 1
	fi
	export DEBIAN_FRONTEND=noninteractive
	# Without a network apt-get update only warns; then the lists lack what is asked for.
	apt-get -q update >"$PACKAGES_LOG" 2>&1
	# Installing a server starts it, but for where a policy says no: tests start their own ones. One that is
	# there already is left as it is.
	policy=/usr/sbin/policy-rc.d
	case " $(echo $missing) " in *" clickhouse-server "* | *" prometheus "*) ;; *) policy= ;; esac
	if [ -e "$policy" ]; then policy=; fi
	if [ -n "$policy" ]; then
		printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod 755 "$policy"
	fi
	apt-get -q -y --no-install-recommends install $missing >>"$PACKAGES_LOG" 2>&1
	installed=$?
	if [ -n "$policy" ]; then
		rm -f "$policy"
		if command -v systemctl >/dev/null; then systemctl -q disable clickhouse-server prometheus 2>/dev/null; fi
	fi
	[ "$installed" -eq 0 ] || {
		why=$(grep -hE 'No space left|Could not resolve|Could not connect|Temporary failure|^E:' "$PACKAGES_LOG" |
			head -n 1)
		echo "These packages could not be installed: $(echo $missing) ($(echo ${why:-$(tail -n 1 "$PACKAGES_LOG")}))" >&2
		return 1
	}
}
