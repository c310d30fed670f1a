#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# sh tests/rooms.sh [--write]: README's table of rooms against the tree. A folder with code has a row and a row a
# folder, and the lines it says are right within a tenth; --write puts down those there are. Prints TAP.
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# ROOM LINES, rounded to tens: code of that folder alone.
find bpf common node-agent symbol-server -name node_modules -prune -o -type f \
	\( -name '*.[ch]' -o -name '*.cc' -o -name '*.ts' -o -name '*.css' \) -print | xargs wc -l | awk '
	$2 == "total" { next }
	{
		room = $2
		sub(/[^\/]*$/, "", room)
		sub(/^symbol-server\/web\/.*/, "symbol-server/web/", room) # one program, one room
		lines[room] += $1
	}
	END { for (room in lines) print room, int((lines[room] + 5) / 10) * 10 }' | sort >"$work/rooms"

if [ "${1:-}" = --write ]; then
	awk -v rooms="$work/rooms" '
		BEGIN { while ((getline line < rooms) > 0) { split(line, part, " "); lines[part[1]] = part[2] } FS = OFS = "|" }
		/^\| `[a-z][a-z_\/-]*\/` \| [0-9 ]*\|/ {
			room = $2
			gsub(/[ `]/, "", room)
			if (room in lines)
				$3 = " " lines[room] " "
		}
		{ print }' README.md >"$work/readme"
	cat "$work/readme" >README.md
fi

sed -n 's/^| `\([a-z][a-z_/-]*\/\)` | \([0-9]*\) *|.*/\1 \2/p' README.md | sort >"$work/rows"
report() { # DESCRIPTION, what is wrong on stdin
	number=$((number + 1))
	wrong=$(cat)
	[ -z "$wrong" ] && echo "ok $number - $1" && return
	failed=1
	echo "not ok $number - $1"
	printf '%s\n' "$wrong" | sed 's/^/# /'
}
number=0 failed=0
: >"$work/none"
join -v 1 "$work/rooms" "$work/rows" >"$work/without"
report "every folder with code has a row in README" <"$work/without"
join -v 2 "$work/rooms" "$work/rows" >"$work/without"
report "every row of README is a folder" <"$work/without"
join "$work/rooms" "$work/rows" | awk '{ off = $2 - $3; if (off < 0) off = -off; if (off > $2 / 10 + 20) print $1, $2, "README:", $3 }' >"$work/without"
report "and says how large it is, within a tenth (sh tests/rooms.sh --write)" <"$work/without"
echo "1..$number"
[ "$failed" -eq 0 ]
