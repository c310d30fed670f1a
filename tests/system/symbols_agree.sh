#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Names, lines and inlined functions of random addresses agree with llvm-symbolizer: in the C library's
# debug file, in C++ and in Rust, made by several compilers in several forms of DWARF. TAP.
# ADDRESSES=20000 asks for more per file.
set -u
cd "$(dirname "$0")/../.." || exit 1
root=$PWD
build=${BUILD:-build}
case $build in /*) ;; *) build=$root/$build ;; esac
addresses=${ADDRESSES:-2000}
number=0
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT INT TERM

report() { # report ok|not-ok TEXT
	number=$((number + 1))
	case $1 in ok) echo "ok $number - $2" ;; skip) echo "ok $number # SKIP $2" ;; *) echo "not ok $number - $2" ;; esac
}

finish() {
	echo "1..$number"
	exit 0
}

for program in llvm-symbolizer-19 readelf c++filt python3 cc; do
	if ! command -v $program >/dev/null; then
		report skip "comparing needs $program"
		finish
	fi
done
tool=$build/tests/tools/symbolize_addresses
make -s --no-print-directory BUILD="$build" "$tool" >"$work/make" 2>&1
if [ $? -ne 0 ]; then
	sed 's/^/# /' "$work/make" | head -20
	report not-ok "tests/tools/symbolize_addresses.c builds"
	finish
fi

agree() { # agree NAME FILE [TOOL]
	result=$(python3 tests/tools/agree_with_llvm.py "${3:-$tool}" "$2" "$addresses" 2>"$work/differences")
	if echo "$result" | awk -F '[= ]' '{ exit !($4 >= 99.95 && $6 >= 99.9 && $8 == 0) }'; then
		report ok "$1: $result"
	else
		report not-ok "$1: $result"
		head -30 "$work/differences"
	fi
}

# --- the C library ---
libc=$(cc -print-file-name=libc.so.6)
id=$(readelf -n "$libc" 2>/dev/null | sed -n 's/.*Build ID: //p')
debug=/usr/lib/debug/.build-id/$(echo "$id" | cut -c 1-2)/$(echo "$id" | cut -c 3-).debug
if [ -r "$debug" ]; then
	agree "C library" "$debug"
else
	report skip "the C library's lines need libc6-dbg"
fi
# without its build-id llvm-symbolizer does not find the debug file either
if objcopy -R .note.gnu.build-id -R .gnu_debuglink "$libc" "$work/libc.so" 2>/dev/null; then
	agree "C library, .dynsym only" "$work/libc.so"
fi

# --- C++ ---
cat >"$work/t.cc" <<'CC'
#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#ifndef WITHOUT_REGEX // most of the time to compile, so once by each compiler
#include <regex>
#endif
#include <string>
#include <vector>
namespace {
struct hidden {
	static int twice(int x);
	int operator()(int a) const { return twice(a) + 1; }
};
int hidden::twice(int x) { return x * 2; }
template <class T> struct shape {
	virtual ~shape() {}
	virtual T area() const = 0;
	T scaled(T k) const { return area() * k; }
};
struct square : shape<double> {
	double s;
	square(double x) : s(x) {}
	double area() const override { return s * s; }
};
}
static int with_local(int n)
{
	struct local {
		int v;
		__attribute__((noinline)) int run() { return v * 3; }
	};
	local l{n};
	return l.run();
}
int main(int c, char **)
{
	std::map<std::string, std::vector<int>> m;
#ifndef WITHOUT_REGEX
	std::regex r("([a-z]+)([0-9]+)");
#endif
	for (int i = 0; i < 1000; i++) {
		std::string t = "abc" + std::to_string(i);
#ifdef WITHOUT_REGEX
		m[t.substr(0, 3)].push_back(std::stoi(t.substr(3)));
#else
		std::smatch s;
		if (std::regex_match(t, s, r))
			m[s[1]].push_back(std::stoi(s[2]));
#endif
	}
	std::function<int(int)> f = hidden{};
	auto g = [&](int x) { return f(x) + c; };
	for (auto &p : m)
		std::sort(p.second.begin(), p.second.end(), [&](int a, int b) { return g(a) > g(b); });
	square q(c);
	printf("%zu %f %d\n", m.size(), q.scaled(2), with_local(c));
	return 0;
}
CC
cxx() { # cxx COMPILER FLAGS…
	if ! command -v "$1" >/dev/null; then
		report skip "C++ by $1: it is not there"
	elif "$@" "$work/t.cc" -o "$work/t" 2>"$work/make"; then
		agree "C++: $*" "$work/t"
	else
		report skip "C++: $* does not build here"
	fi
}
cxx g++ -O2 -g
cxx g++ -O2 -gdwarf-4
cxx g++ -O0 -g
cxx g++ -DWITHOUT_REGEX -O2 -g0
cxx g++ -DWITHOUT_REGEX -O2 -g -gz
cxx g++ -O2 -g -flto
cxx g++ -DWITHOUT_REGEX -O2 -g -ffunction-sections -Wl,--gc-sections
cxx g++ -DWITHOUT_REGEX -O2 -g -static
cxx g++ -DWITHOUT_REGEX -O2 -g -no-pie
cxx clang++ -O2 -g
cxx g++ -DWITHOUT_REGEX -O2 -gdwarf-2
cxx g++ -DWITHOUT_REGEX -O2 -g -gdwarf64
cxx g++ -DWITHOUT_REGEX -O2 -gdwarf-4 -fdebug-types-section
cxx g++ -O2 -g -fdebug-types-section
cxx clang++ -O2 -g -flto -fuse-ld=lld

# Asks us about other files than llvm: agree_of NAME FILE-FOR-LLVM OUR-FILE…
agree_of() {
	name=$1 theirs=$2
	shift 2
	printf '#!/bin/sh\nexec "%s" %s\n' "$tool" "$*" >"$work/ours"
	chmod +x "$work/ours"
	agree "$name" "$theirs" "$work/ours"
}

# --- split DWARF: llvm finds the .dwo and the .dwp by their names ---
split() { # split COMPILER FLAGS…
	mkdir "$work/split" && cd "$work/split" || exit 1
	if ! command -v "$1" >/dev/null || ! "$@" -gsplit-dwarf -c ../t.cc -o t.o 2>make || ! "$1" t.o -o t; then
		report skip "split DWARF: $* does not build here"
	else
		objects=$(find "$work/split" -name '*.dwo')
		cd "$root" || exit 1
		agree_of "split: $*, its .dwo" "$work/split/t" "$work/split/t" "$objects"
		if timeout 30 llvm-dwp-19 -e "$work/split/t" -o "$work/split/t.dwp" 2>"$work/make"; then
			rm $objects
			agree_of "split: $*, its .dwp" "$work/split/t" "$work/split/t" "$work/split/t.dwp"
		else
			report skip "split: $*, its .dwp: llvm-dwp-19 does not make it, or not within 30 s"
		fi
	fi
	cd "$root" || exit 1
	rm -rf "$work/split"
}
split g++ -O2 -g
split g++ -O2 -gdwarf-4
split clang++ -O2 -g
split clang++ -O2 -gdwarf-4

# --- compressed, shared between files by dwz, not linked yet ---
g++ -O2 -g "$work/t.cc" -o "$work/t"
if llvm-objcopy-19 --compress-debug-sections=zstd "$work/t" "$work/t.zstd" 2>/dev/null; then
	agree "zstd sections" "$work/t.zstd"
else
	report skip "zstd sections: llvm-objcopy-19 cannot make them"
fi
if objcopy --compress-debug-sections=zlib-gnu "$work/t" "$work/t.zdebug" 2>/dev/null; then
	agree_of ".zdebug sections, which llvm gave up reading" "$work/t" "$work/t.zdebug"
else
	report skip ".zdebug sections: objcopy does not make them any more"
fi
if command -v dwz >/dev/null; then
	cp "$work/t" "$work/one"
	g++ -DWITHOUT_REGEX -O1 -g "$work/t.cc" -o "$work/two"
	(cd "$work" && dwz -m shared.debug one two)
	agree_of "dwz with its shared file" "$work/t" "$work/one" "$work/shared.debug"
else
	report skip "dwz is not there"
fi
cat >"$work/t.c" <<'C'
static inline __attribute__((always_inline)) int small(int x) { return x * 3 + (x >> 2); }
static inline __attribute__((always_inline)) int loop(int x) { int r = 0; for (int i = 0; i < x; i++) r += small(i ^ r); return r; }
__attribute__((noinline)) int far(int *p, int n) { int t = 0; for (int i = 0; i < n; i++) { p[i] = loop(p[i]); t ^= p[i]; } return t; }
int other(int *p, int n) { return far(p, n) + loop(n) + small(p[0]); }
int third(int a) { int z[4] = {a, a + 1, 2, 3}; return other(z, 4) * small(a); }
C
object() { # object COMPILER FLAGS…: one file, for machines we have no libraries of
	if command -v "$1" >/dev/null && "$@" "$work/t.c" -o "$work/t.o" 2>"$work/make"; then
		agree "C: $*" "$work/t.o"
	else
		report skip "C: $* does not build here"
	fi
}
object gcc -O2 -g -c
object gcc -O2 -gdwarf-4 -gz -c
object clang --target=aarch64-linux-gnu -O2 -g -c
object gcc -m32 -O2 -g -c
for machine in arm mips mips64el powerpc powerpc64le s390x; do
	object clang --target=$machine-linux-gnu -O2 -g -c
done
for machine in aarch64_be powerpc mips; do
	object clang --target=$machine-linux-gnu -O2 -g -fPIC -shared -nostdlib -fuse-ld=lld
done

# --- Rust ---
cat >"$work/t.rs" <<'RS'
use std::collections::HashMap;
use std::fmt::Write;
trait Shape { fn area(&self) -> f64; }
struct Square(f64);
enum Kind { A(u32), B }
impl Shape for Square { fn area(&self) -> f64 { self.0 * self.0 } }
impl Kind { fn value(&self) -> u32 { match self { Kind::A(x) => *x, Kind::B => 7 } } }
mod deep {
    pub mod er {
        #[inline(never)]
        pub fn work(v: &mut Vec<u64>) { v.sort_by(|a, b| b.cmp(a)); v.dedup(); }
    }
}
fn main() {
    let mut m: HashMap<String, u64> = HashMap::new();
    for i in 0..1000u64 {
        let mut s = String::new();
        write!(s, "k{}", i % 17).unwrap();
        *m.entry(s).or_insert(0) += i;
    }
    let mut v: Vec<u64> = m.values().cloned().collect();
    deep::er::work(&mut v);
    let s: Box<dyn Shape> = Box::new(Square(v[0] as f64));
    println!("{:?} {} {}", v, s.area(), Kind::A(3).value() + Kind::B.value());
}
RS
if command -v rustc >/dev/null && rustc -g -O "$work/t.rs" -o "$work/t" 2>"$work/make"; then
	agree "Rust" "$work/t"
	rustc -g "$work/t.rs" -o "$work/t" 2>/dev/null && agree "Rust without optimization" "$work/t"
	rustc -g -O -C symbol-mangling-version=v0 "$work/t.rs" -o "$work/t" 2>/dev/null &&
		agree "Rust, v0 mangling" "$work/t"
else
	report skip "Rust needs rustc"
fi
finish
