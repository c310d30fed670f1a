// SPDX-License-Identifier: Apache-2.0
// shapes_rs SECONDS: names only Rust has, for the symbol tests: traits, generics, closures, modules.
use std::collections::HashMap;
use std::time::{Duration, Instant};

mod shapes {
    pub trait Shape {
        fn area(&self) -> f64;
    }
    pub struct Polygon<const SIDES: usize> {
        pub length: f64,
    }
    impl<const SIDES: usize> Shape for Polygon<SIDES> {
        #[inline(never)]
        fn area(&self) -> f64 {
            (0..SIDES).map(|side| self.length * self.length / (side as f64 + 1.0)).sum()
        }
    }
    #[inline(never)]
    pub fn sum_areas(all: &[Box<dyn Shape>]) -> f64 {
        all.iter().map(|shape| shape.area()).sum()
    }
}

#[inline(never)]
fn count_words(text: &str) -> HashMap<&str, usize> {
    let mut words = HashMap::new();
    for word in text.split_whitespace() {
        *words.entry(word).or_insert(0) += 1;
    }
    words
}

fn main() {
    let seconds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1);
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut all: Vec<Box<dyn shapes::Shape>> = Vec::new();
    let text = "the quick brown fox jumps over the lazy dog and the dog sleeps on ".repeat(20);
    let mut sum = 0.0;
    for i in 0..500 {
        all.push(Box::new(shapes::Polygon::<5> { length: i as f64 }));
        all.push(Box::new(shapes::Polygon::<8> { length: i as f64 }));
    }
    while Instant::now() < end {
        sum += shapes::sum_areas(&all) + count_words(&text).len() as f64;
    }
    std::process::exit((sum < 0.0) as i32);
}
