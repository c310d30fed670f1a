# SPDX-License-Identifier: Apache-2.0
# Sourced by scripts that print TAP: $number results so far, $bad of them not ok.
number=0 bad=0

result() { # STATUS DESCRIPTION [LOG]: what the log says of errors is shown
	number=$((number + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $number - $2"
	else
		bad=$((bad + 1))
		echo "not ok $number - $2"
		[ -z "${3:-}" ] || grep -E 'not ok|error|# ' "$3" | head -n 12 | sed 's/^/# /'
	fi
}

skip() { # WHY
	number=$((number + 1))
	echo "ok $number # SKIP $1"
}
