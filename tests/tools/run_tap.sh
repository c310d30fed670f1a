#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# sh tests/tools/run_tap.sh BUILD PROGRAM… [-- FUZZ_TARGET…]: runs programs that print TAP, shows what failed
# and why something was skipped, ends with a line of counts. A program that crashes, takes more than
# TAP_SECONDS (default 900: for what hangs, not for what a busy machine lets wait), exits non-zero without
# a "not ok", prints no plan or another number of results than planned counts as a failure. Fuzz targets
# get the files of tests/fuzz/corpus/NAME.
# TAP_TOTALS=FILE: appends "passed failed skipped" for whoever adds several runs up. TAP_JOBS=N: so many at a
# time, for programs that do not mind each other. TAP_AGAIN=N: if no more than N programs failed, they are run once more,
# alone, and that counts; what failed at first stays shown, and who passed then is called unsteady (also in FILE.unsteady).
set -u
cd "$(dirname "$0")/../.." || exit 1
build=$1
shift
logs=$build/tap
mkdir -p "$logs"
passed=0 failed=0 skipped=0 fuzzing=

run_one() { # PROGRAM ARGUMENT…
	log=$logs/$(echo "${1#"$build"/}" | tr / _)
	started=$(date +%s)
	# Through a pipe: a test may set a limit on the size of files, its results are not meant.
	{
		case $1 in
		*.sh) timeout -k 10 "${TAP_SECONDS:-900}" sh "$@" ;;
		*.py) timeout -k 10 "${TAP_SECONDS:-900}" /usr/bin/python3 -B "$@" ;;
		*.mjs) timeout -k 10 "${TAP_SECONDS:-900}" node --test-reporter=tap "$@" ;;
		*) timeout -k 10 "${TAP_SECONDS:-900}" "$@" ;;
		esac 2>"$log.err" </dev/null
		echo $? >"$log.status"
	} | cat >"$log.tap"
	status=$(cat "$log.status")
	counts=$(awk -v status=$status -v program="$1" '
		/^1\.\.[0-9]+/ { plan = substr($1, 4); planned = 1; if (/# *SKIP/) { skipped_all = 1; print "  skipped: " program ": " $0 } next }
		/^(not )?ok/ && /# *(SKIP|skip)/ { skip++; text = $0; sub(/.*# *(SKIP|skip) */, "", text); print "  skipped: " text; shown = 0; next }
		/^ok/ { pass++; shown = 0; next }
		/^not ok/ { fail++; print "  " $0; shown = 1; next }
		/^# Subtest:/ { shown = 0 }
		/^(#| )/ { if (shown && shown++ < 40) print "    " $0 }
		END {
			all = pass + fail + skip
			if (skipped_all && !all) skip = 1
			else if (!planned) why = "printed no plan"
			else if (plan != all) why = "planned " plan " results and printed " all
			if (status == 124 || status == 137) why = "was stopped after its time was over"
			else if (status > 128) why = "was ended by signal " status - 128
			else if (status && !fail && !why) why = "exit status " status
			if (why) { fail++; print "  not ok - " program " " why }
			print "COUNTS " pass + 0, fail + 0, skip + 0
		}' "$log.tap")
	printf '%s\n' "$counts" | sed '/^COUNTS /d'
	set -- "$1" $(printf '%s\n' "$counts" | sed -n 's/^COUNTS //p')
	if [ "$3" -gt 0 ]; then
		tail -n 25 "$log.err" | sed 's/^/    | /'
	fi
	if [ "$3" -gt 0 ] && [ "${TAP_AGAIN:-0}" -gt 0 ]; then
		echo "$*" >>"$taken/again"
	else
		passed=$((passed + $2)) failed=$((failed + $3)) skipped=$((skipped + $4))
	fi
	printf '%-60s %4d ok%s%s  (%d s)\n' "${1#"$build"/}" "$2" "$([ "$3" -eq 0 ] || echo ", $3 NOT OK")" \
		"$([ "$4" -eq 0 ] || echo ", $4 skipped")" $(($(date +%s) - started))
}

# The next program that no other lane has taken, until there is none.
run_lane() { # LANE PROGRAM…
	lane=$1
	shift
	at=0
	for program; do
		if [ "$program" = -- ]; then
			fuzzing=yes
			continue
		fi
		at=$((at + 1))
		mkdir "$taken/$at" 2>/dev/null || continue
		if [ -n "$fuzzing" ]; then
			name=$(basename "$program" _fuzz)
			set -- tests/fuzz/corpus/"$name"/*
			[ -e "$1" ] || set -- # no corpus: the program then plans nothing, which is a failure
			if [ $# -eq 0 ]; then
				echo "  not ok - tests/fuzz/corpus/$name is empty"
				failed=$((failed + 1))
			else
				run_one "$program" "$@"
			fi
		else
			run_one "$program"
		fi
	done
	echo "$passed $failed $skipped" >"$taken/lane.$lane"
}

taken=$(mktemp -d) || exit 1
lane=1
while [ "$lane" -le "${TAP_JOBS:-1}" ]; do
	run_lane "$lane" "$@" &
	lane=$((lane + 1))
done
wait

# PROGRAM PASSED FAILED SKIPPED a line, of those that failed.
run_again() {
	again=$(wc -l <"$taken/again")
	while read -r program counts; do
		if [ "$again" -gt "$TAP_AGAIN" ]; then
			echo "$counts" >>"$taken/lane.again"
			continue
		fi
		echo "again, alone: $program"
		passed=0 failed=0 skipped=0
		TAP_AGAIN=0 run_one "$program"
		echo "$passed $failed $skipped" >>"$taken/lane.again"
		[ "$failed" -gt 0 ] && continue
		echo "  unsteady: $program failed at first"
		[ -z "${TAP_TOTALS:-}" ] || echo "$program" >>"$TAP_TOTALS.unsteady"
	done <"$taken/again"
}

[ ! -s "$taken/again" ] || run_again
counts=$(cat "$taken"/lane.* | awk '{ for (i = 1; i < 4; i++) sum[i] += $i } END { print sum[1] + 0, sum[2] + 0, sum[3] + 0 }')
rm -rf "$taken"
# shellcheck disable=SC2086
set -- $counts
[ -z "${TAP_TOTALS:-}" ] || echo "$1 $2 $3" >>"$TAP_TOTALS"
echo "$1 passed, $2 failed, $3 skipped"
[ "$2" -eq 0 ]
