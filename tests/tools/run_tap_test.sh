#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The test runner has to notice every way a test program can go wrong. Prints TAP.
set -u
unset TAP_TOTALS
cd "$(dirname "$0")/../.." || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
number=0 bad=0

expect() { # COUNTS DESCRIPTION: for the program on stdin
	cat >"$work/program.sh"
	number=$((number + 1))
	got=$(TAP_SECONDS=2 sh tests/tools/run_tap.sh "$work" "$work/program.sh" 2>&1 | tail -n 1)
	if [ "$got" = "$1" ]; then
		echo "ok $number - $2"
	else
		bad=$((bad + 1))
		echo "not ok $number - $2"
		echo "# got: $got; want: $1"
	fi
}

expect "2 passed, 0 failed, 0 skipped" "all is well" <<'T'
echo "ok 1 - a"; echo "ok 2 - b"; echo 1..2
T
expect "1 passed, 1 failed, 0 skipped" "a failed check" <<'T'
echo 1..2; echo "ok 1 - a"; echo "not ok 2 - b"; exit 1
T
expect "1 passed, 0 failed, 1 skipped" "a skip is not a pass" <<'T'
echo "ok 1 - a"; echo "ok 2 # SKIP no kernel"; echo 1..2
T
expect "0 passed, 0 failed, 1 skipped" "everything skipped" <<'T'
echo "1..0 # SKIP no root"
T
expect "1 passed, 1 failed, 0 skipped" "no plan" <<'T'
echo "ok 1 - a"
T
expect "1 passed, 1 failed, 0 skipped" "fewer results than planned" <<'T'
echo 1..2; echo "ok 1 - a"
T
expect "1 passed, 1 failed, 0 skipped" "ended by a signal" <<'T'
echo "ok 1 - a"; echo 1..1; kill -SEGV $$
T
expect "1 passed, 1 failed, 0 skipped" "exit status without a reason" <<'T'
echo "ok 1 - a"; echo 1..1; exit 3
T
expect "0 passed, 1 failed, 0 skipped" "never ends" <<'T'
echo 1..0; sleep 60
T
expect "1 passed, 0 failed, 0 skipped" "a limit on file sizes is the test's own affair" <<'T'
ulimit -f 0; echo "ok 1 - a"; echo 1..1
T
expect "0 passed, 1 failed, 0 skipped" "prints nothing" <<'T'
:
T
# Several at a time: every one once, every failure counted.
for program in one two three four five; do
	printf 'echo 1..2; echo "ok 1 - a"; sleep 0.2; echo "%s 2 - b"\n' \
		"$([ $program = four ] && echo not ok || echo ok)" >"$work/$program.sh"
done
number=$((number + 1))
got=$(TAP_JOBS=2 sh tests/tools/run_tap.sh "$work" "$work"/one.sh "$work"/two.sh "$work"/three.sh "$work"/four.sh \
	"$work"/five.sh 2>&1)
status=$?
if [ "$status" -ne 0 ] && [ "$(echo "$got" | tail -n 1)" = "9 passed, 1 failed, 0 skipped" ]; then
	echo "ok $number - two at a time"
else
	bad=$((bad + 1))
	echo "not ok $number - two at a time"
	echo "$got" | sed 's/^/# /'
fi
# What fails at first is run again, and only if few did.
cat >"$work/once.sh" <<'T'
echo 1..1
if [ -e "${0%.sh}.ran" ]; then echo "ok 1 - a"; else : >"${0%.sh}.ran"; echo "not ok 1 - a"; fi
T
cp "$work/once.sh" "$work/twice.sh"
again() { # AGAIN COUNTS UNSTEADY DESCRIPTION
	rm -f "$work"/*.ran "$work"/totals*
	number=$((number + 1))
	got=$(TAP_AGAIN=$1 TAP_TOTALS=$work/totals sh tests/tools/run_tap.sh "$work" "$work/one.sh" "$work/once.sh" "$work/twice.sh" \
		${5:+"$5"} 2>&1)
	if [ "$(echo "$got" | tail -n 1)" = "$2" ] && [ "$(cat "$work/totals.unsteady" 2>/dev/null | wc -l)" -eq "$3" ] &&
		[ "$(echo "$got" | grep -c "not ok 1 - a")" -eq 2 ]; then
		echo "ok $number - $4"
	else
		bad=$((bad + 1))
		echo "not ok $number - $4"
		echo "$got" | sed 's/^/# /'
	fi
}
again 0 "2 passed, 2 failed, 0 skipped" 0 "not run again"
again 1 "2 passed, 2 failed, 0 skipped" 0 "too many to be run again"
again 2 "4 passed, 0 failed, 0 skipped" 2 "run again, and said so"
again 3 "5 passed, 1 failed, 0 skipped" 2 "who fails again has failed" "$work/four.sh"
echo "1..$number"
[ "$bad" -eq 0 ]
