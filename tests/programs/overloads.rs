// SPDX-License-Identifier: Apache-2.0
// overloads_rs SECONDS: one generic function as two instances, whose turns take three times as long in the one as in the
// other; it prints the seconds of u32's and of u64's.
use std::ops::Add;
use std::time::Instant;

/// As `std::hint::black_box`, which rustc before 1.66 does not have.
fn black_box<T>(value: T) -> T {
    let same = unsafe { std::ptr::read_volatile(&value) };
    std::mem::forget(value);
    same
}

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
