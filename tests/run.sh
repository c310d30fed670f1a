#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# sh tests/run.sh: everything that has to pass, in one go; installs what it needs (Debian 12, root). Ends with
# "N passed, N failed, N skipped" and is non-zero when anything failed. Without root the steps that need
# it are skipped. STEPS="check layers" runs only those; FUZZ_TOTAL=seconds of fuzzing in all (300). STEPS=arm64
# is not among them by itself: its compiler and emulators are large.
set -u
cd "$(dirname "$0")/.." || exit 1
. deploy/packages.sh
build=${BUILD:-build}
steps=${STEPS:-"build tools layers check web system kernels fuzz"}
TAP_TOTALS=$build/tests.totals
PACKAGES_LOG=$build/packages.log
export TAP_TOTALS
begin=$(date +%s)
mkdir -p "$build"
: >"$TAP_TOTALS"
: >"$TAP_TOTALS.unsteady"

total() { # PASSED FAILED SKIPPED, of a step that does not count itself
	echo "$1 $2 $3" >>"$TAP_TOTALS"
}

run_step() { # NAME COMMAND…: a step that fails without a failed test of its own counts as one failure
	name=$1
	shift
	echo "== $name"
	step_begin=$(date +%s)
	failed_before=$(awk '{ sum += $2 } END { print sum + 0 }' "$TAP_TOTALS")
	if ! "$@"; then
		failed_after=$(awk '{ sum += $2 } END { print sum + 0 }' "$TAP_TOTALS")
		if [ "$failed_after" = "$failed_before" ]; then
			echo "  not ok - the step \"$name\" failed"
			total 0 1 0
		fi
	fi
	echo "== $name took $(($(date +%s) - step_begin)) s"
}

build_all() {
	make -j"$(nproc)" BUILD="$build" >"$build/make.log" 2>&1 && return
	grep -E 'error: |undefined reference|No space|\*\*\*' "$build/make.log" | head -n 10
	return 1
}

check() {
	make --no-print-directory -j"$(nproc)" check BUILD="$build" >"$build/check.log" 2>&1
	status=$?
	# The compiler's lines are of no interest as long as it succeeds.
	if grep -qE '[0-9]+ passed, [0-9]+ failed' "$build/check.log"; then
		grep -vE '^(cc|c\+\+|gcc|clang|bpftool|protoc-c|esbuild|gzip|awk|cp|ar|make)\b' "$build/check.log" |
			sed -n '/^  \| ok\|passed,/p'
	else
		grep -E 'error: |undefined reference|No space|\*\*\*' "$build/check.log" | head -n 10
	fi
	return $status
}

arm64() {
	install_packages $packages_arm64 || return 1
	TAP_SECONDS=1200 sh tests/tools/run_tap.sh "$build" tests/arm64/run.sh
}

needs_root() { # COMMAND…
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	else
		echo "  skipped: needs root"
		total 0 0 1
	fi
}

step() {
	case $1 in
	build) run_step "build" build_all ;;
	tools) run_step "the test runner itself" sh tests/tools/run_tap.sh "$build" tests/tools/run_tap_test.sh ;;
	layers) BUILD=$build run_step "layers and doors" sh tests/tools/run_tap.sh "$build" tests/layers.sh tests/rooms.sh ;;
	check) run_step "check: unit, golden, corpus, under ASan and UBSan" check ;;
	web) run_step "web: types, rules, unit tests of the page" make --no-print-directory check-web BUILD="$build" ;;
	system) TAP_AGAIN=4 run_step "system: this kernel, real programs" needs_root sh tests/system/run.sh "$build" ;;
	kernels) BUILD=$build KERNELS="${KERNELS:-}" TAP_SECONDS=2700 run_step "kernels under QEMU" \
		sh tests/tools/run_tap.sh "$build" tests/kernels/run.sh ;;
	arm64) BUILD=$build run_step "arm64 under qemu" arm64 ;;
	fuzz) FUZZ_TOTAL=${FUZZ_TOTAL:-300} run_step "fuzzing" sh tests/fuzz/run.sh "$build" ;;
	*) echo "There is no step named $1." >&2 && exit 2 ;;
	esac
}

if [ "$(id -u)" -eq 0 ]; then
	echo "== packages"
	message=$(install_packages $packages_tests 2>&1) || {
		echo "$message"
		echo "0 passed, 1 failed, 0 skipped"
		exit 1
	}
	echo "== packages took $(($(date +%s) - begin)) s"
fi
for name in $steps; do
	step "$name"
	if [ "$name" = build ] && [ ! -x "$build/farflame-agent" ]; then
		break
	fi
done
[ ! -s "$TAP_TOTALS.unsteady" ] ||
	sed 's/^/unsteady, failed at first and passed when run again alone: /' "$TAP_TOTALS.unsteady"
echo "all of it took $(($(date +%s) - begin)) s"
awk '{ passed += $1; failed += $2; skipped += $3 }
	END { printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped; exit failed > 0 || passed == 0 }' \
	"$TAP_TOTALS"
