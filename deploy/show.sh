#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# sh deploy/show.sh URL FROM UNTIL: what a farflame server knows about that time, as text: CPU share per
# process, the 20 hottest functions, what is without names and why, the accounting. FROM and UNTIL as
# the REST API takes them (unix seconds, now-1h …). Needs curl, awk and jq.
set -u
url=$1 from=$2 until=$3
range="type=on-cpu&from=$from&until=$until"

answer=$(mktemp) || exit 1
trap 'rm -f "$answer"' EXIT

get() { # PATH: the answer into $answer; otherwise the server's own sentence, and 1
	status=$(curl -sS --max-time 30 -o "$answer" -w '%{http_code}' "$url$1" 2>&1) || {
		echo "The server at $url did not answer: ${status%000}" >&2
		return 1
	}
	[ "$status" = 200 ] || {
		echo "The server refused $1: $(jq -r .error.message "$answer" 2>/dev/null)" >&2
		return 1
	}
}

show_processes() {
	get "/api/v1/flamegraph?$range&format=folded&group_by=process&max_nodes=1000000" || return
	awk '
	{
		value = $NF
		name = $0
		sub(/ [0-9]+$/, "", name)
		sub(/;.*/, "", name)
		by_name[name] += value
		all += value
	}
	END {
		for (name in by_name)
			printf "%5.1f %%  %8.2f s  %s\n", 100 * by_name[name] / all, by_name[name] / 1e9, name
	}' "$answer" | sort -t% -k1,1nr | awk '
	NR <= 15 { print "  " $0 }
	END {
		if (NR > 15) print "  … and " NR - 15 " more"
		if (!NR) print "  no samples in this time"
	}'
}

show_functions() {
	get "/api/v1/top?$range" || return
	jq -r '
		([.functions[].self] | add // 0) as $all
		| .functions | sort_by(-.self)[:20][] | select(.self > 0)
		| [(100 * .self / $all * 10 | round / 10 | tostring), .name,
		   (if (.file // "") == "" then "" else (.file | split("/") | .[-2:] | join("/"))
			+ (if (.line // 0) > 0 then ":\(.line)" else "" end) end),
		   (.module // "")] | @tsv' "$answer" | awk -F '\t' '
	function fit(text, width) { return length(text) > width ? substr(text, 1, width - 3) "..." : text }
	{ printf "  %5.1f %%  %-48s  %-32s  %s\n", $1, fit($2, 48), fit($3, 32), $4 }'
}

show_unnamed() {
	get /api/v1/modules || return
	jq -r '
		[.modules[] | select(.state != "ready" and (.unsymbolized_share // 0) >= 0.0005)]
		| sort_by(-.unsymbolized_share)[:5]
		| if length > 0 then "Modules that leave frames without names:" else empty end,
		(.[] | "  \(.name // .build_id): \(.state)\(if (.reason // "") != "" then ", " + .reason else "" end)"
		+ " (\(.unsymbolized_share * 1000 | round / 10) % of samples)")' "$answer"
}

show_accounting() {
	get "/api/v1/flamegraph?$range&format=json&max_nodes=1" || return
	jq -r '.accounting
		| . as $a
		| def percent($part): if $a.samples > 0 then " (\(1000 * $part / $a.samples | round / 10) %)" else "" end;
		"Accounting: \(.taken) samples taken = \(.samples) shown + \(.lost) lost"
		+ (if .lost > 0 then " (" + ([.lost_by | to_entries[] | select(.value > 0) | "\(.key) \(.value)"]
			| join(", ")) + ")" else "" end)
		+ "; stack incomplete in \(.unwind_incomplete)" + percent(.unwind_incomplete)
		+ ", a frame without name in \(.unsymbolized)" + percent(.unsymbolized)
		+ "; \(.hosts) host" + (if .hosts == 1 then "" else "s" end) + "."' "$answer"
}

echo "CPU time by process:"
show_processes || exit 1
echo
echo "Hottest functions, by the time spent in themselves:"
show_functions || exit 1
echo
show_unnamed && show_accounting
