// SPDX-License-Identifier: Apache-2.0
//! Work of a program under stress: what Rust's compiler makes of its collections, strings, traits,
//! formatting and threads. Nothing panics: D's return probes that are uprobes are the kernel's
//! uretprobes, through which nothing can be thrown (docs/limits.md).
use std::collections::{BTreeMap, HashMap};
use std::sync::mpsc;

trait Shape {
    fn area(&self) -> u64;
}
struct Square(u64);
struct Oblong(u64, u64);
impl Shape for Square {
    fn area(&self) -> u64 {
        self.0.wrapping_mul(self.0)
    }
}
impl Shape for Oblong {
    fn area(&self) -> u64 {
        self.0.wrapping_mul(self.1)
    }
}

#[no_mangle]
#[inline(never)]
pub extern "C" fn rust_sort(seed: u64) -> u64 {
    let mut values: Vec<u64> = (0..200u64)
        .map(|i| (i ^ seed).wrapping_mul(0x9E37_79B9_7F4A_7C15))
        .collect();
    values.sort_unstable_by_key(|value| value >> 7);
    values.iter().enumerate().fold(0, |sum: u64, (i, value)| {
        sum.wrapping_add(value.rotate_left(i as u32))
    })
}

#[no_mangle]
#[inline(never)]
pub extern "C" fn rust_maps(seed: u64) -> u64 {
    let mut words: HashMap<String, u64> = HashMap::new();
    for i in 0..100 {
        *words
            .entry(format!("word-{:x}", (i * seed) % 37))
            .or_insert(0) += i;
    }
    let sorted: BTreeMap<&String, &u64> = words.iter().collect();
    sorted.iter().fold(seed, |sum, (word, count)| {
        sum.wrapping_mul(31)
            .wrapping_add(word.len() as u64 + **count)
    })
}

#[no_mangle]
#[inline(never)]
pub extern "C" fn rust_shapes(seed: u64) -> u64 {
    let shapes: Vec<Box<dyn Shape>> = (0..30)
        .map(|i| -> Box<dyn Shape> {
            if (i + seed) % 3 == 0 {
                Box::new(Square(i + seed))
            } else {
                Box::new(Oblong(i, seed))
            }
        })
        .collect();
    shapes
        .iter()
        .map(|shape| shape.area())
        .fold(0, u64::wrapping_add)
}

#[no_mangle]
#[inline(never)]
pub extern "C" fn rust_text(seed: u64) -> u64 {
    let text = format!(
        "{:>12}|{:e}|{:?}|{:#b}",
        seed,
        seed as f64 / 7.0,
        Some(seed),
        seed
    );
    let number: Result<u64, _> = text.trim().split('|').next().unwrap_or("x").trim().parse();
    text.bytes().fold(number.unwrap_or(1), |hash, byte| {
        (hash ^ byte as u64).wrapping_mul(1_099_511_628_211)
    })
}

#[no_mangle]
#[inline(never)]
pub extern "C" fn rust_threads(seed: u64) -> u64 {
    let (sender, receiver) = mpsc::channel();
    let worker = std::thread::spawn(move || {
        for i in 0..8 {
            sender.send(rust_shapes(seed + i)).unwrap();
        }
    });
    let sum = receiver.iter().fold(0, u64::wrapping_add);
    worker.join().unwrap();
    sum
}

#[no_mangle]
pub extern "C" fn stress_round(seed: u64) -> u64 {
    let parts = [rust_sort, rust_maps, rust_shapes, rust_text, rust_threads];
    parts.iter().fold(seed, |digest, part| {
        digest.wrapping_mul(31).wrapping_add(part(seed))
    })
}
