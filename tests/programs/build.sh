#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# sh tests/programs/build.sh DIR [NAME…]: builds the programs of known shape into DIR, those that are
# older than their sources. Without names: all; the Rust one only where there is a Rust compiler.
set -eu
cd "$(dirname "$0")/../.."
out=$1
shift
mkdir -p "$out"
# No name of the folder it was built in gets into the programs.
map="-ffile-prefix-map=$PWD=."
common="-std=gnu11 -g $map -iquote . -Wall -Wextra"
# Every stack is known: frame pointers, no call turned into a jump, no function merged or split.
known="-O1 -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer -fno-optimize-sibling-calls -fno-stack-protector -fcf-protection=none"

is_current() {
	[ -e "$out/$1" ] && [ -z "$(find tests/programs -type f -newer "$out/$1")" ]
}

build() {
	case $1 in
	chain_pie) cc $common $known -fPIE -pie tests/programs/chain_main.c tests/programs/chain.c -o "$2" ;;
	# The same program with build-ids of its own, so that no other one's names can help out.
	chain_deleted | chain_ns) cc $common $known -fPIE -pie "-Wl,--build-id=0x$(echo "$1" | sha1sum | cut -c1-40)" \
		tests/programs/chain_main.c tests/programs/chain.c -o "$2" ;;
	chain_nopie) cc $common $known -fno-pie -no-pie tests/programs/chain_main.c tests/programs/chain.c -o "$2" ;;
	chain_static) cc $common $known -static tests/programs/chain_main.c tests/programs/chain.c -o "$2" ;;
	chain_thread) cc $common $known -fPIE -pie -pthread -DIN_THREAD tests/programs/chain_main.c \
		tests/programs/chain.c -o "$2" ;;
	chain_dlopen) cc $common $known -fPIE -pie tests/programs/chain_dlopen.c -o "$2" -ldl ;;
	libchain.so) cc $common $known -fPIC -shared tests/programs/chain.c -o "$2" ;;
	syscall_loop) cc $common $known tests/programs/syscall_loop.c -o "$2" ;;
	handler) cc $common $known -static -pthread tests/programs/handler.c -o "$2" ;;
	thread_starts) cc $common $known -pthread tests/programs/thread_starts.c -o "$2" ;;
	waits) cc $common -O2 -fno-omit-frame-pointer -fno-optimize-sibling-calls -pthread tests/programs/waits.c -o "$2" ;;
	room_below) cc $common -O2 -fomit-frame-pointer tests/programs/room_below.c -o "$2" ;;
	burn | short_life) cc $common -O2 -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer "tests/programs/$1.c" -o "$2" ;;
	farflame-demo) cc $common -O2 -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer -fno-optimize-sibling-calls -pthread \
		tests/programs/demo.c -o "$2" ;;
	shapes_cc) c++ -std=c++17 -O2 -g -fno-omit-frame-pointer $map tests/programs/shapes.cc -o "$2" ;;
	shapes_rs) rustc --remap-path-prefix "$PWD=." --edition 2021 -C opt-level=2 -C debuginfo=2 tests/programs/shapes.rs -o "$2" ;;
	*) echo "there is no program named $1" >&2 && return 2 ;;
	esac
}

if [ $# -eq 0 ]; then
	set -- chain_pie chain_deleted chain_ns chain_nopie chain_static chain_thread chain_dlopen libchain.so syscall_loop burn \
		short_life handler threads room_below waits farflame-demo shapes_cc
	! command -v rustc >/dev/null || set -- "$@" shapes_rs
fi
for name; do
	is_current "$name" || { build "$name" "$out/$name.new" && mv "$out/$name.new" "$out/$name"; }
done
