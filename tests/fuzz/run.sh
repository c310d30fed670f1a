#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# sh tests/fuzz/run.sh BUILD [TARGET] [SECONDS]: libFuzzer over one target, or over all of them; SECONDS for
# each (default 60). FUZZ_TOTAL=SECONDS shares that time out instead. What makes a target fail is kept
# in BUILD/fuzz/found; a file that shows a mended fault belongs into tests/fuzz/corpus.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=$1
targets=${2:-}
seconds=${3:-60}
[ -n "$seconds" ] || seconds=60
[ -n "$targets" ] || targets=$(ls tests/fuzz/*_fuzz.c 2>/dev/null | sed 's|.*/||; s|_fuzz\.c$||')
count=$(echo "$targets" | wc -w)
[ "$count" -gt 0 ] || { echo "There are no fuzz targets." >&2 && exit 1; }
if [ -n "${FUZZ_TOTAL:-}" ] && [ $((FUZZ_TOTAL / count)) -lt "$seconds" ]; then
	seconds=$((FUZZ_TOTAL / count))
fi
passed=0 failed=0
mkdir -p "$build/fuzz/found"

# The sanitizers' runtime has to be clang's own; -O1 keeps the build short; function and vptr need the C++ one.
programs=$(for name in $targets; do echo "$build/fuzz/tests/fuzz/${name}_libfuzzer"; done)
# shellcheck disable=SC2086
make --no-print-directory -j"$(nproc)" BUILD="$build/fuzz" CC=clang CXX=clang++ \
	CFLAGS="-O1 -g -fsanitize=address,undefined,fuzzer-no-link -fno-sanitize=function,vptr -fno-sanitize-recover=all" \
	$programs >"$build/fuzz/build.log" 2>&1 || {
	echo "  not ok - the fuzz targets do not build:"
	grep -E 'error: |undefined reference|\*\*\*' "$build/fuzz/build.log" | head -n 5 | sed 's/^/    /'
	[ -z "${TAP_TOTALS:-}" ] || echo "0 1 0" >>"$TAP_TOTALS"
	echo "0 passed, 1 failed, 0 skipped"
	exit 1
}

run_target() { # NAME
	work=$build/fuzz/corpus/$1
	log=$build/fuzz/$1.log
	mkdir -p "$work"
	# New inputs go to the first folder, the kept ones are only read.
	if "$build/fuzz/tests/fuzz/${1}_libfuzzer" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
		-print_final_stats=1 -artifact_prefix="$build/fuzz/found/$1-" \
		"$work" "tests/fuzz/corpus/$1" >"$log" 2>&1; then
		runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
		printf '%-60s %10s inputs in %d s\n' "$1" "$runs" "$seconds"
	else
		echo "  not ok - $1: $(grep -m1 -E 'ERROR|SUMMARY|runtime error' "$log")"
		grep -m1 'Test unit written' "$log" | sed 's/^/    /'
	fi >"$build/fuzz/$1.result"
	cat "$build/fuzz/$1.result"
}

# As many at a time as there are processors: all take the same time.
running=0
for name in $targets; do
	run_target "$name" &
	running=$((running + 1))
	[ $((running % $(nproc))) -ne 0 ] || wait
done
wait
for name in $targets; do
	case $(cat "$build/fuzz/$name.result") in
	*"not ok"*) failed=$((failed + 1)) ;;
	*) passed=$((passed + 1)) ;;
	esac
done
[ -z "${TAP_TOTALS:-}" ] || echo "$passed $failed 0" >>"$TAP_TOTALS"
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
