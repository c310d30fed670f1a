#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# sh tests/kernels/fetch.sh DIR KERNEL…: unpacks Debian's cloud kernels into DIR/KERNEL (vmlinuz and version),
# without touching this system's packages: each suite gets apt lists of its own below DIR. KERNEL is a
# version such as 5.10, or "newest". What is there already is kept. With KEEP_MODULES=1 the kernel's modules are
# in DIR/KERNEL/modules. Prints one line for each:
#   KERNEL PATH-OF-VMLINUZ RELEASE      or      KERNEL missing REASON
# sh tests/kernels/fetch.sh --mirror: prints where from.
set -u
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
# The mirror this system uses itself.
mirror=$(sed -nE 's#^(URIs:|deb (\[[^]]*\] )?) *(https?://[^ ]*)/debian/?( .*)?$#\3#p' \
	/etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | head -n 1)
if [ "$1" = --mirror ]; then
	echo "$mirror"
	exit
fi
dir=$1
shift
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)

suite_apt() { # SUITE COMMAND…: apt with the suite's own lists
	home=$dir/apt/$1
	program=$2
	shift 2
	"$program" -o Dir::Etc::sourcelist="$home/sources.list" -o Dir::Etc::sourceparts=- \
		-o Dir::State::Lists="$home/lists" -o Dir::Cache="$home/cache" -o APT::Sandbox::User=root "$@"
}

suite_update() { # SUITE LINE…
	home=$dir/apt/$1
	suite=$1
	shift
	[ ! -e "$home/updated" ] || return 0
	mkdir -p "$home/lists/partial" "$home/cache/archives/partial"
	printf "deb [signed-by=$keyring] $mirror/%s main\n" "$@" >"$home/sources.list"
	suite_apt "$suite" apt-get -qq update >"$home/log" 2>&1 && touch "$home/updated"
}

# SUITE KERNEL: the newest package of that version which can be had.
suite_find() {
	case $2 in
	newest) pattern='[0-9]+\.[0-9]+' ;;
	*) pattern=$(echo "$2" | sed 's/\./\\./g') ;;
	esac
	suite_apt "$1" apt-cache search --names-only '^linux-image-[0-9].*-cloud-amd64$' | awk '{ print $1 }' |
		grep -E "^linux-image-$pattern\.[0-9]+([-+][a-z0-9.]+)*-cloud-amd64$" | sort -rV | while read -r package; do
		suite_apt "$1" apt-cache policy "$package" | grep -q 'Candidate: [0-9]' && echo "$package" && break
	done
}

suites_of() { # KERNEL: where it may be; every suite with the archives it is made of
	case $1 in
	5.10) echo bullseye ;;
	6.1 | 6.12) echo bookworm ;;
	*) echo trixie-backports ;;
	esac
}

fetch() { # KERNEL
	target=$dir/$1
	if [ ! -e "$target/release" ] || { [ -n "${KEEP_MODULES:-}" ] && [ ! -d "$target/modules" ]; }; then
		suite=$(suites_of "$1")
		case $suite in
		*-backports) set -- "$1" "debian $suite" ;;
		*) set -- "$1" "debian $suite" "debian-security $suite-security" ;;
		esac
		kernel=$1
		shift
		suite_update "$suite" "$@" || {
			echo "$kernel missing the package lists of $suite cannot be had"
			return
		}
		package=$(suite_find "$suite" "$kernel")
		[ -n "$package" ] || {
			echo "$kernel missing $suite has no cloud kernel $kernel"
			return
		}
		release=${package#linux-image-}
		# Since 7.0 the image package is empty, the kernel lies in linux-binary-* and its modules in linux-modules-*.
		packages=$package
		for part in "linux-binary-$release" ${KEEP_MODULES:+"linux-modules-$release"}; do
			suite_apt "$suite" apt-cache policy "$part" | grep -q 'Candidate: [0-9]' && packages="$packages $part"
		done
		rm -rf "$target.new"
		mkdir -p "$target.new/files"
		# shellcheck disable=SC2086
		(cd "$target.new" && suite_apt "$suite" apt-get -qq download $packages >log 2>&1 &&
			for file in *.deb; do dpkg -x "$file" files && rm "$file"; done) || {
			echo "$kernel missing $package could not be downloaded"
			return
		}
		found=$(find "$target.new/files" -name 'vmlinuz*' -type f | head -n 1)
		[ -n "$found" ] || {
			echo "$kernel missing $package holds no vmlinuz"
			return
		}
		mv "$found" "$target.new/vmlinuz"
		[ -z "${KEEP_MODULES:-}" ] || find "$target.new/files" -type d -path '*/modules/*' -name kernel -exec mv {} "$target.new/modules" \; -quit
		rm -rf "$target.new/files" "$target"
		echo "$release" >"$target.new/release"
		mv "$target.new" "$target"
		set -- "$kernel"
	fi
	echo "$1 $target/vmlinuz $(cat "$target/release")"
}

for kernel; do
	if [ -z "$mirror" ]; then
		echo "$kernel missing this system's apt sources name no Debian mirror"
	else
		fetch "$kernel"
	fi
done
