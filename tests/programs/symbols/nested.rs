// SPDX-License-Identifier: Apache-2.0
// For the symbol tests: functions in modules, in implementations of traits, and closures.
#![crate_type = "cdylib"]
pub mod deep {
    pub trait Shape {
        fn area(&self) -> u64;
    }
    pub struct Square(pub u64);
    impl Shape for Square {
        #[inline(never)]
        fn area(&self) -> u64 {
            self.0.wrapping_mul(self.0)
        }
    }
    #[inline(never)]
    pub fn sum(shapes: &[&dyn Shape]) -> u64 {
        shapes.iter().map(|shape| shape.area()).fold(0, u64::wrapping_add)
    }
}
#[no_mangle]
pub extern "C" fn rust_entry(x: u64) -> u64 {
    let (a, b) = (deep::Square(x), deep::Square(x + 1));
    let mut v = vec![x, x / 3, 7];
    v.sort_by(|p, q| q.cmp(p));
    deep::sum(&[&a, &b]) + v[0]
}
