#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# sh tests/arm64/fetch.sh DIR PACKAGE…: unpacks Debian 12's arm64 packages into DIR/root, without touching this
# system's: apt gets lists of its own below DIR and knows no other architecture. "kernel" is the newest cloud
# kernel. What is there already is kept. Says on stderr why something cannot be had.
set -u
dir=$1
shift
mkdir -p "$dir/lists/partial" "$dir/cache/archives/partial" "$dir/unpacked" "$dir/root"
dir=$(cd "$dir" && pwd)
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
# The mirror this system uses itself.
mirror=$(sed -nE 's#^(URIs:|deb (\[[^]]*\] )?) *(https?://[^ ]*)/debian/?( .*)?$#\3#p' \
	/etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | head -n 1)

arm64_apt() { # COMMAND…
	program=$1
	shift
	"$program" -o Dir::Etc::sourcelist="$dir/sources.list" -o Dir::Etc::sourceparts=- -o Dir::State::Lists="$dir/lists" \
		-o Dir::State::status="$dir/status" -o Dir::Cache="$dir/cache" -o APT::Architecture=arm64 \
		-o APT::Architectures::=arm64 -o APT::Sandbox::User=root "$@"
}

update() {
	[ ! -e "$dir/updated" ] || return 0
	if [ -z "$mirror" ]; then
		echo "this system's apt sources name no Debian mirror" >&2
		return 1
	fi
	printf "deb [arch=arm64 signed-by=$keyring] $mirror/%s main\n" "debian bookworm" \
		"debian-security bookworm-security" >"$dir/sources.list"
	: >"$dir/status"
	if ! arm64_apt apt-get -qq update >"$dir/log" 2>&1; then
		echo "arm64's package lists cannot be had" >&2
		return 1
	fi
	touch "$dir/updated"
}

newest_kernel() {
	arm64_apt apt-cache search --names-only '^linux-image-[0-9].*-cloud-arm64$' | awk '{ print $1 }' | sort -V | tail -n 1
}

fetch() { # PACKAGE
	[ ! -e "$dir/unpacked/$1" ] || return 0
	update || return 1
	package=$1
	[ "$package" != kernel ] || package=$(newest_kernel)
	rm -rf "$dir/download"
	mkdir -p "$dir/download"
	(cd "$dir/download" && arm64_apt apt-get -qq download "$package" >log 2>&1 && dpkg -x ./*.deb "$dir/root") || {
		echo "arm64's package $package could not be downloaded" >&2
		return 1
	}
	rm -rf "$dir/download"
	echo "$package" >"$dir/unpacked/$1"
}

for name; do
	fetch "$name" || exit 1
done
