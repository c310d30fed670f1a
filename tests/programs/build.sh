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

context="-O1 -fno-omit-frame-pointer -fno-optimize-sibling-calls -pthread"
served="tests/programs/contexts.c tests/programs/context_writer.c"
case $(uname -m) in aarch64) tls_old=trad tls_new=desc ;; *) tls_old=gnu tls_new=gnu2 ;; esac

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
	late_code) cc $common -O2 -fomit-frame-pointer -fno-optimize-sibling-calls tests/programs/late_code.c -o "$2" ;;
	syscall_loop) cc $common $known tests/programs/syscall_loop.c -o "$2" ;;
	handler) cc $common $known -static -pthread tests/programs/handler.c -o "$2" ;;
	thread_starts) cc $common $known -pthread tests/programs/thread_starts.c -o "$2" ;;
	call_sites) cc $common -O2 -fno-omit-frame-pointer -fno-optimize-sibling-calls -pthread tests/programs/call_sites.c -o "$2" ;;
	blocks) cc $common -O2 -fno-omit-frame-pointer -fno-optimize-sibling-calls -pthread tests/programs/blocks.c -o "$2" ;;
	takes) cc $common -O2 -fno-omit-frame-pointer -fno-optimize-sibling-calls tests/programs/takes.c -o "$2" ;;
	takes_static) cc $common -O2 -static -fno-omit-frame-pointer -fno-optimize-sibling-calls tests/programs/takes.c -o "$2" ;;
	takes_cc) c++ -std=c++17 -O2 -g -fno-omit-frame-pointer -fno-optimize-sibling-calls $map tests/programs/takes_cc.cc -o "$2" ;;
	takes_rs) rustc --remap-path-prefix "$PWD=." --edition 2021 -C opt-level=2 -C debuginfo=2 -C force-frame-pointers=yes \
		tests/programs/takes_rs.rs -o "$2" ;;
	waits) cc $common -O2 -fno-omit-frame-pointer -fno-optimize-sibling-calls -pthread tests/programs/waits.c -o "$2" ;;
	touches) cc $common -O2 -fno-omit-frame-pointer -fno-optimize-sibling-calls tests/programs/touches.c -o "$2" ;;
	allocs) cc $common -O2 -fno-omit-frame-pointer -fno-optimize-sibling-calls -fno-builtin -pthread tests/programs/allocs.c -o "$2" ;;
	held_sites) cc $common -O2 -fno-omit-frame-pointer -fno-optimize-sibling-calls -fno-builtin tests/programs/held_sites.c -o "$2" ;;
	allocs_cc) c++ -std=c++17 -O2 -g -fno-omit-frame-pointer -fno-optimize-sibling-calls $map tests/programs/allocs_cc.cc -o "$2" ;;
	libearly.so) cc $common -O2 -fPIC -shared tests/programs/early_alloc.c -Wl,-soname,libearly.so -o "$2" ;;
	early) cc $common -O2 tests/programs/early_main.c "$out/libearly.so" '-Wl,-rpath,$ORIGIN' -o "$2" ;;
	own_malloc) cc $common -O2 -fno-omit-frame-pointer -fno-builtin -rdynamic tests/programs/own_malloc.c -o "$2" ;;
	# The thread's pointer by every way there is: what a program itself, or its libraries, have.
	contexts) cc $common $context -fPIE -pie -DWITH_WRITER $served -rdynamic -o "$2" ;;
	contexts_static) cc $common $context -static-pie -fPIE -DWITH_WRITER $served -o "$2" ;;
	libcontext_gd.so) cc $common $context -fPIC -shared -mtls-dialect=$tls_old tests/programs/context_writer.c -o "$2" ;;
	libcontext_desc.so) cc $common $context -fPIC -shared -mtls-dialect=$tls_new tests/programs/context_writer.c -o "$2" ;;
	libcontext_ie.so) cc $common $context -fPIC -shared -ftls-model=initial-exec tests/programs/context_writer.c -o "$2" ;;
	contexts_gd | contexts_desc | contexts_ie)
		sh tests/programs/build.sh "$out" "libcontext_${1#contexts_}.so"
		cc $common $context -fPIE -pie -DWITH_WRITER tests/programs/contexts.c -o "$2" "$out/libcontext_${1#contexts_}.so" \
			-Wl,-rpath,'$ORIGIN' ;;
	contexts_dlopen) cc $common $context -fPIE -pie tests/programs/contexts.c -o "$2" -ldl ;;
	embeds_python) cc $common -O1 -pthread tests/programs/embeds_python.c -o "$2" -ldl ;;
	python_mix.so) c++ -std=c++17 $known -g -fPIC -shared $map tests/programs/python_mix.cc -o "$2" ;;
	looks_like_python) cc $common -O2 -rdynamic -pthread tests/programs/looks_like_python.c -o "$2" ;;
	looks_like_python_musl) musl-gcc $common -O2 -static -pthread tests/programs/looks_like_python.c -o "$2" ;;
	room_below) cc $common -O2 -fomit-frame-pointer tests/programs/room_below.c -o "$2" ;;
	burn | short_life | mix) cc $common -O2 -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer "tests/programs/$1.c" -o "$2" ;;
	farflame-demo) cc $common -O2 -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer -fno-optimize-sibling-calls -pthread \
		tests/programs/demo.c -o "$2" ;;
	shapes_cc) c++ -std=c++17 -O2 -g -fno-omit-frame-pointer $map tests/programs/shapes.cc -o "$2" ;;
	shapes_rs) rustc --remap-path-prefix "$PWD=." --edition 2021 -C opt-level=2 -C debuginfo=2 tests/programs/shapes.rs -o "$2" ;;
	overloads_cc) c++ -std=c++17 -O1 -g -fno-omit-frame-pointer -fno-optimize-sibling-calls $map tests/programs/overloads.cc -o "$2" ;;
	# Rust's old names are asked of a new compiler as an unstable option.
	overloads_rs | overloads_rs_v0) RUSTC_BOOTSTRAP=1 rustc -Z unstable-options --remap-path-prefix "$PWD=." --edition 2021 -C opt-level=1 -C debuginfo=2 -C force-frame-pointers=yes \
		-C symbol-mangling-version="$(test "$1" = overloads_rs_v0 && echo v0 || echo legacy)" tests/programs/overloads.rs -o "$2" ;;
	allocs_rs) rustc --remap-path-prefix "$PWD=." --edition 2021 -C opt-level=2 -C debuginfo=2 tests/programs/allocs.rs -o "$2" ;;
	*) echo "there is no program named $1" >&2 && return 2 ;;
	esac
}

if [ $# -eq 0 ]; then
	set -- chain_pie chain_deleted chain_ns chain_nopie chain_static chain_thread chain_dlopen libchain.so syscall_loop burn \
		short_life mix handler threads room_below call_sites blocks waits touches farflame-demo shapes_cc
	! command -v rustc >/dev/null || set -- "$@" shapes_rs
fi
for name; do
	is_current "$name" || { build "$name" "$out/$name.new" && mv "$out/$name.new" "$out/$name"; }
done
