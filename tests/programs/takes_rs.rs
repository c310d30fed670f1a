// SPDX-License-Identifier: Apache-2.0
// takes_rs SECONDS [ROUNDS]: as takes.c, by Rust's default allocator.
use std::io::Read;
use std::time::{Duration, Instant};

// std::hint::black_box of Rust 1.66, for older compilers.
fn black_box<T>(value: T) -> T {
    unsafe {
        let read = std::ptr::read_volatile(&value);
        std::mem::forget(value);
        read
    }
}

#[inline(never)]
#[no_mangle]
pub fn by_box() -> usize {
    black_box(Box::new([0u8; 300]));
    300
}

#[inline(never)]
#[no_mangle]
pub fn by_vec(bytes: usize) -> usize {
    black_box(Vec::<u8>::with_capacity(bytes));
    bytes
}

#[inline(never)]
#[no_mangle]
pub fn by_zeroed(bytes: usize) -> usize {
    black_box(vec![0u8; 2 * bytes]);
    2 * bytes
}

#[inline(never)]
#[no_mangle]
pub fn by_growth(bytes: usize) -> usize {
    let mut all = Vec::<u8>::with_capacity(bytes);
    all = black_box(all);
    all.reserve_exact(3 * bytes);
    black_box(&all);
    4 * bytes
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let seconds = arguments.get(1).and_then(|text| text.parse().ok()).unwrap_or(1);
    let rounds: u64 = arguments.get(2).and_then(|text| text.parse().ok()).unwrap_or(10000);
    let mut taken = [0usize; 4];
    let mut turns = 0usize;
    println!("ready");
    if std::io::stdin().read(&mut [0u8]).unwrap_or(0) == 0 {
        std::process::exit(1);
    }
    let end = Instant::now() + Duration::from_secs(seconds);
    while Instant::now() < end {
        let bytes = 64 + turns.wrapping_mul(2654435761) % 1000;
        taken[0] += by_box();
        taken[1] += by_vec(bytes);
        taken[2] += by_zeroed(bytes);
        taken[3] += by_growth(bytes);
        for i in 0..rounds {
            black_box(i);
        }
        turns += 1;
    }
    println!("by_box {}\nby_vec {}\nby_zeroed {}\nby_growth {}", taken[0], taken[1], taken[2], taken[3]);
}
