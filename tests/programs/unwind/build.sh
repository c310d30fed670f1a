#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# sh tests/programs/unwind/build.sh DIR [NAME…]: builds the programs whose stacks are hard to walk into DIR,
# those that are older than their sources; without names all that can be built here, and says on stderr what
# cannot and why. NAME.debug beside a program is the same one with what was taken out of it: for a debugger.
set -eu
cd "$(dirname "$0")/../../.."
out=$1
here=tests/programs/unwind
shift
mkdir -p "$out"
out=$(cd "$out" && pwd)
common="-g -ffile-prefix-map=$PWD=. -iquote . -Wall -Wextra"
flags="-std=gnu11 -D_GNU_SOURCE -O2 -fomit-frame-pointer $common"

is_current() {
	[ -e "$out/$1" ] && [ -z "$(find $here -type f -newer "$out/$1")" ]
}

stripped() { # TO KEEP_AS_DEBUG STRIP_OPTION…: takes out of TO what the options name
	to=$1 debug=$2
	shift 2
	mv "$to" "$debug"
	objcopy "$@" "$debug" "$to"
}

go_build() { # TO CGO OPTION…
	to=$1
	shift
	(cd $here/go && CGO_ENABLED=$1 GOTOOLCHAIN=local GO111MODULE=on && shift &&
		export CGO_ENABLED GOTOOLCHAIN GO111MODULE && go build -buildvcs=false "$@" -o "$to" .)
}

build() { # NAME TO
	case $1 in
	deep | recursion | alloca | big_frame | switch | tail | cold | syscalls | coroutines)
		cc $flags "$here/$1.c" -o "$2" ;;
	noreturn) cc $flags -D_FORTIFY_SOURCE=0 $here/noreturn.c -o "$2" ;;
	deep_static) cc $flags -static $here/deep.c -o "$2" ;;
	deep_static_pie) cc $flags -static-pie $here/deep.c -o "$2" ;;
	deep_nopie) cc $flags -fno-pie -no-pie $here/deep.c -o "$2" ;;
	deep_clang) clang $flags $here/deep.c -o "$2" ;;
	deep_stripped) cc $flags $here/deep.c -o "$2" && stripped "$2" "$3" --strip-all ;;
	exceptions) c++ -std=c++17 -O2 $common $here/exceptions.cc -o "$2" ;;
	exceptions_static) c++ -std=c++17 -O2 $common -static $here/exceptions.cc -o "$2" ;;
	signals) cc $flags $here/signals.c -o "$2" ;;
	signals_alternate) cc $flags -DALTERNATE $here/signals.c -o "$2" ;;
	spawn) cc $flags $here/spawn.c -o "$2" ;;
	fork_only) cc $flags -DFORK_ONLY $here/spawn.c -o "$2" ;;
	libplugin_a.so) cc $flags -fPIC -shared -fno-inline -Wl,-z,lazy -DPLUGIN=a $here/plugin.c -o "$2" ;;
	libplugin_b.so) cc $flags -fPIC -shared -fno-inline -fno-omit-frame-pointer -Wl,-z,lazy -DPLUGIN=b \
		$here/plugin.c -o "$2" ;;
	plugins) cc $flags -rdynamic $here/plugins.c -o "$2" -ldl ;;
	plt) cc $flags -rdynamic -DPLT_ONLY $here/plugins.c -o "$2" -ldl ;;
	realign) cc $flags -mavx2 $here/realign.c -o "$2" ;;
	realign_clang) clang $flags -mavx2 $here/realign.c -o "$2" ;;
	realign_main) cc $flags -mstackrealign $here/deep.c -o "$2" ;;
	# Only .debug_frame; nothing, with and without frame pointers.
	debug_frame) cc $flags -fno-asynchronous-unwind-tables $here/mixed_tables.c -o "$2" ;;
	no_table) cc $flags -fno-asynchronous-unwind-tables $here/mixed_tables.c -o "$2" &&
		stripped "$2" "$3" --strip-debug ;;
	no_table_fp) cc $flags -O1 -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer -fno-optimize-sibling-calls \
		-fno-asynchronous-unwind-tables $here/mixed_tables.c -o "$2" && stripped "$2" "$3" --strip-debug ;;
	threads) cc $flags -pthread $here/threads.c -o "$2" ;;
	memory_exec) cc $flags $here/memory_exec.c -o "$2" ;;
	exec_again) cc $flags -DEXEC_AGAIN $here/memory_exec.c -o "$2" ;;
	remap) cc $flags $here/remap.c -o "$2" ;;
	remapped_a | remapped_b)
		bytes=24
		[ "$1" = remapped_a ] || bytes=400
		cc $flags -fPIC -fno-stack-protector -DFRAME_BYTES=$bytes -shared -nostdlib -Wl,-z,noseparate-code \
			-Wl,-e,remapped $here/remapped.c -o "$2" ;;
	ladder) cc $flags $here/ladder.S $here/ladder_main.c -o "$2" ;;
	compat) cc -m32 -O1 -ffreestanding -fno-pic -no-pie -nostdlib -static $here/compat.c -o "$2" ;;
	rust) rustc --edition 2021 -C opt-level=2 -g --remap-path-prefix "$PWD=." $here/chains.rs -o "$2" ;;
	rust_abort) rustc --edition 2021 -C opt-level=2 -C panic=abort -g --remap-path-prefix "$PWD=." \
		$here/chains.rs -o "$2" ;;
	go) go_build "$2" 0 ;;
	go_stripped) go_build "$3" 0 && go_build "$2" 0 -ldflags "-s -w" ;;
	go_pie) go_build "$2" 0 -buildmode=pie ;;
	go_cgo) go_build "$2" 1 ;;
	*) echo "there is no program named $1" >&2 && return 2 ;;
	esac
}

# Why a program cannot be built here, or nothing.
missing() {
	case $1 in
	rust*) command -v rustc >/dev/null || echo "no rustc" ;;
	go | go_*)
		command -v go >/dev/null || echo "no go"
		case $(go env GOVERSION 2>/dev/null) in
		go1.[0-9] | go1.[0-9].* | go1.1[0-9]* | go1.20*) echo "gdb loses its way where Go before 1.21 switches stacks" ;;
		esac
		;;
	*_clang) command -v clang >/dev/null || echo "no clang" ;;
	esac
}

all="deep deep_static deep_static_pie deep_nopie deep_clang deep_stripped recursion alloca big_frame switch tail
	noreturn cold syscalls coroutines exceptions exceptions_static signals signals_alternate spawn fork_only
	libplugin_a.so libplugin_b.so plugins plt realign realign_clang realign_main debug_frame no_table no_table_fp
	threads memory_exec exec_again remap remapped_a remapped_b ladder compat rust rust_abort go go_stripped go_pie
	go_cgo"
[ $# -gt 0 ] || set -- $all
for name; do
	why=$(missing "$name")
	if [ -n "$why" ]; then
		echo "$name: $why" >&2
	elif ! is_current "$name"; then
		build "$name" "$out/$name.new" "$out/$name.debug"
		mv "$out/$name.new" "$out/$name"
	fi
done
