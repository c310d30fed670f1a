// SPDX-License-Identifier: Apache-2.0
// overloads_rs SECONDS: one generic function as two instances, whose turns take three times as long in the one as in the
// other; it prints the seconds of u32's and of u64's.
#![feature(bench_black_box)] // before rustc 1.66
#![allow(stable_features)]
use std::hint::black_box;
use std::ops::Add;
use std::time::Instant;

#[inline(never)]
pub fn work<T: Copy + Add<Output = T>>(rounds: u32, start: T, step: T) -> T {
    let mut sum = start;
    for _ in 0..rounds {
        sum = black_box(sum + step);
    }
    sum
}

fn main() {
    let end: f64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(5.0);
    let (mut small, mut large) = (0.0, 0.0);
    while small + large < end {
        let begin = Instant::now();
        black_box(work::<u32>(3_000_000, 0, black_box(0)));
        small += begin.elapsed().as_secs_f64();
        let begin = Instant::now();
        black_box(work::<u64>(9_000_000, 0, 1));
        large += begin.elapsed().as_secs_f64();
    }
    println!("{small:.3} {large:.3}");
}
