// SPDX-License-Identifier: Apache-2.0
//! Rust: generic closures, iterators, boxed calls, panics caught where they unwind.
use std::time::{Duration, Instant};

/// As `std::hint::black_box`, which rustc before 1.66 does not have.
#[inline(always)]
fn black_box<T>(value: T) -> T {
    let same = unsafe { std::ptr::read_volatile(&value) };
    std::mem::forget(value);
    same
}

#[inline(never)]
fn leaf(x: u64) -> u64 {
    (0..40).fold(black_box(x), |x, i| (x ^ (x << 13)).rotate_left(7).wrapping_add(i))
}

#[inline(never)]
fn down(depth: u32, x: u64) -> u64 {
    let room = black_box([x; 12]);
    let below = if depth == 0 { leaf(x) } else { down(depth - 1, x ^ 1) };
    below.wrapping_add(room[(x % 12) as usize])
}

#[inline(never)]
fn boxed(steps: &[Box<dyn Fn(u64) -> u64>], x: u64) -> u64 {
    steps.iter().fold(x, |x, step| step(x))
}

#[inline(never)]
fn sorted(x: u64) -> u64 {
    let mut values: Vec<u64> = (0..200).map(|i| leaf(x ^ i)).collect();
    values.sort_by_key(|v| leaf(*v));
    values[0]
}

#[cfg(panic = "unwind")]
#[inline(never)]
fn panics(x: u64) -> u64 {
    match std::panic::catch_unwind(|| if leaf(x) != 0 { std::panic::panic_any(x) } else { 1 }) {
        Ok(value) => value,
        Err(_) => 2,
    }
}

#[cfg(not(panic = "unwind"))]
fn panics(x: u64) -> u64 {
    x
}

fn main() {
    let seconds: f64 = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(1.0);
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    let steps: Vec<Box<dyn Fn(u64) -> u64>> =
        vec![Box::new(leaf), Box::new(|x| down(20, x)), Box::new(sorted), Box::new(|x| down(5, leaf(x)))];
    std::panic::set_hook(Box::new(|_| {}));
    let mut x = 1;
    while Instant::now() < end {
        x = boxed(&steps, x) ^ panics(x);
    }
    black_box(x);
}
