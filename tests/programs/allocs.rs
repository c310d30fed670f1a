// SPDX-License-Identifier: Apache-2.0

// allocs_rs: waits for a line, takes memory by Box, vec!, a Vec that grows and an alignment of its own, each in a
// function of its own, gives back half, prints "SITE TAKEN IN_USE BLOCKS" in bytes and "kept", and waits for
// another line. Rust's default allocator is the C library's.

use std::alloc::{alloc, dealloc, Layout};
use std::io::{stdin, stdout, Write};
use std::thread::sleep;
use std::time::Duration;

const ROUNDS: usize = 16000;
const RECORD: usize = 700;

#[no_mangle]
#[inline(never)]
pub fn site_box(value: u8) -> Box<[u8; RECORD]> {
    Box::new([value; RECORD])
}

#[no_mangle]
#[inline(never)]
pub fn site_zeroed(size: usize) -> Vec<u8> {
    vec![0; size]
}

#[no_mangle]
#[inline(never)]
pub fn site_grown(count: usize) -> Vec<u64> {
    let mut many: Vec<u64> = Vec::with_capacity(count);

    for i in 0..count {
        many.push(i as u64);
    }
    many.reserve_exact(count);
    many
}

#[no_mangle]
#[inline(never)]
pub fn site_aligned(size: usize) -> *mut u8 {
    unsafe {
        let at = alloc(aligned(size));
        at.write_volatile(1); // a call, and no jump
        at
    }
}

fn aligned(size: usize) -> Layout {
    Layout::from_size_align(size, 64).unwrap()
}

fn wait_for_line() {
    let mut line = String::new();

    stdout().flush().unwrap();
    stdin().read_line(&mut line).unwrap();
}

fn main() {
    let (mut boxes, mut zeroed, mut grown, mut others) = (vec![], vec![], vec![], vec![]);
    let (mut taken, mut kept) = ([0; 4], [0; 4]);

    println!("ready");
    wait_for_line();
    for i in 0..ROUNDS {
        let size = 100 + i * 7919 % 1500;

        if i % 50 == 0 {
            sleep(Duration::from_millis(2)); // all that is sampled has to be read
        }
        let one = site_box(i as u8);
        let zeros = site_zeroed(size);
        let many = site_grown(size / 8);
        let other = site_aligned(size);
        let bytes = [RECORD, size, size / 8 * 24, size];
        let stays = [RECORD, size, size / 8 * 16, size];

        for k in 0..4 {
            taken[k] += bytes[k];
            kept[k] += if i % 2 == 1 { stays[k] } else { 0 };
        }
        if i % 2 == 1 {
            boxes.push(one);
            zeroed.push(zeros);
            grown.push(many);
            others.push(other as usize);
        } else {
            unsafe { dealloc(other, aligned(size)) };
        }
    }
    for (k, name) in ["site_box", "site_zeroed", "site_grown", "site_aligned"].iter().enumerate() {
        println!("{} {} {} 0", name, taken[k], kept[k]);
    }
    println!("kept");
    wait_for_line();
    println!("{}", boxes.len() + zeroed.len() + grown.len() + others.len());
}
