#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# sh tests/arm64/run.sh BUILD: the agent compiled for arm64; its unwinder's tests under qemu's user emulation, the rows of
# arm64's C library against llvm-dwarfdump and readelf, a process that walks its own stacks against libgcc, the threads of
# Debian's CPython for arm64 and their frames against what its interface says. With
# ARM64_KERNEL=1 the agent also samples under Debian's arm64 kernel, emulated (boot.sh), which takes minutes.
# Prints TAP. Everything lies in BUILD/arm64.
set -u
cd "$(dirname "$0")/../.." || exit 1
work=${1:-${BUILD:-build}}/arm64
mkdir -p "$work"
work=$(cd "$work" && pwd)
root=$work/debian/root built=$work/build libc=/usr/aarch64-linux-gnu
. tests/tools/tap.sh

emulated() { # PROGRAM ARGUMENT…
	timeout -k 5 120 qemu-aarch64 -cpu max -L $libc "$@" </dev/null
}

all_of() { # DESCRIPTION COMMAND…: a program that prints TAP of its own is one result here; its skips are shown
	description=$1
	shift
	"$@" >"$work/one.tap" 2>&1
	status=$?
	grep -q '^1\.\.' "$work/one.tap" || status=1
	count=$(grep '^ok' "$work/one.tap" | grep -vc SKIP)
	why=$(sed -n 's/^ok.*# SKIP //p' "$work/one.tap")
	if [ $status -eq 0 ] && [ "$count" -eq 0 ]; then
		skip "$description: $why"
		return
	fi
	result $status "$description ($count checks)" "$work/one.tap"
	[ -z "$why" ] || echo "# partly not here: $why"
}

make_arm64() { # TARGET…
	make --no-print-directory BUILD="$built" CC=aarch64-linux-gnu-gcc CXX=false LDFLAGS="-L$root/usr/lib/aarch64-linux-gnu" \
		CFLAGS="-O2 -g -Werror -isystem $root/usr/include -isystem $root/usr/include/aarch64-linux-gnu" \
		testable="$built/testable-agent.a" \
		TEST_LIBS="-L$root/usr/lib/aarch64-linux-gnu -lbpf -lelf -lz -lprotobuf-c -lnettle -lseccomp -lssl -lcrypto" "$@"
}

for tool in aarch64-linux-gnu-gcc qemu-aarch64 llvm-dwarfdump-19; do
	command -v $tool >/dev/null && continue
	echo "1..0 # SKIP needs $tool"
	exit 0
done
if ! why=$(sh tests/arm64/fetch.sh "$work/debian" libbpf-dev libelf-dev zlib1g-dev libprotobuf-c-dev nettle-dev libseccomp-dev \
	libssl-dev libc6 libgcc-s1 zlib1g libexpat1 libssl3 libpython3.11 libpython3.11-minimal libpython3.11-stdlib 2>&1); then
	echo "1..0 # SKIP $why"
	exit 0
fi

unit=
for name in file_parser/row_builder file_parser/call_frames file_parser/code_file file_parser/unwind_file unwind/row_pages \
	bpf/stack_walk bpf/stack_rules bpf/row_find; do
	unit="$unit $built/tests/unit/${name}_test"
done
# shellcheck disable=SC2086
make_arm64 -j"$(nproc)" "$built/farflame-agent" $unit >"$work/make.log" 2>&1
result $? "the agent, its BPF programs and the unwinder's tests compile without a warning" "$work/make.log"
[ "$bad" -eq 0 ] || {
	echo "1..$number"
	exit 1
}
for test in $unit; do
	all_of "${test#"$built/tests/"}" emulated "$test"
done

compile="aarch64-linux-gnu-gcc -std=gnu11 -O2 -g -D_GNU_SOURCE -Wall -Wextra -Werror -fomit-frame-pointer
	-fno-optimize-sibling-calls -iquote . -iquote $built -pthread"
with="$built/testable-agent.a -L$root/usr/lib/aarch64-linux-gnu -lbpf -lelf -lz -lnettle"
python=$root/usr/lib/aarch64-linux-gnu/libpython3.11.so.1.0
# shellcheck disable=SC2086
{
	$compile tests/arm64/walk_test.c $with -o "$work/walk" &&
		$compile -static tests/arm64/walk_test.c $with -o "$work/walk_static" &&
		$compile -mbranch-protection=standard tests/arm64/walk_test.c $with -o "$work/walk_signed" &&
		$compile tests/tools/print_rows.c $with -o "$work/print_rows"
} >"$work/compile.log" 2>&1
result $? "the programs that walk their own stacks compile" "$work/compile.log"
all_of "stacks as libgcc has them: without frame pointers" emulated "$work/walk"
all_of "stacks as libgcc has them: linked statically" emulated "$work/walk_static"
all_of "stacks as libgcc has them: return addresses signed" emulated "$work/walk_signed"

# shellcheck disable=SC2086
$compile -isystem "$root/usr/include" tests/arm64/python_test.c $with "$python" -Wl,--allow-shlib-undefined \
	-o "$work/python" >"$work/compile_python.log" 2>&1
result $? "the program that looks for its own Python frames compiles" "$work/compile_python.log"
all_of "Python's threads and frames as CPython has them" timeout -k 5 120 qemu-aarch64 -cpu max -L "$root" \
	-E LD_LIBRARY_PATH=/usr/lib/aarch64-linux-gnu:/lib/aarch64-linux-gnu -E PYTHONHOME=/usr -E "PYTHON_LIBRARY=$python" \
	"$work/python" "$root/lib/aarch64-linux-gnu/libc.so.6"

/usr/bin/python3 -B tests/arm64/rows_test.py "qemu-aarch64 -L $libc $work/print_rows" $libc/lib/libc.so.6 $libc/lib/libm.so.6 \
	$libc/lib/ld-linux-aarch64.so.1 $libc/lib/libgcc_s.so.1 "$work/walk_signed" "$built/farflame-agent" \
	>"$work/rows.tap" 2>&1 || grep -q '^not ok' "$work/rows.tap" || echo "not ok - rows_test.py failed" >>"$work/rows.tap"
while read -r line; do
	case $line in
	"ok "*) result 0 "${line#* - }" ;;
	"not ok "*) result 1 "${line#* - }" ;;
	"#"*) echo "$line" ;;
	esac
done <"$work/rows.tap"

if [ -n "${ARM64_KERNEL:-}" ]; then
	. tests/arm64/boot.sh
fi
echo "1..$number"
[ "$bad" -eq 0 ]
