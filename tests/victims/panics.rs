// SPDX-License-Identifier: Apache-2.0
// Victim `panics`: Rust functions left by panics that are caught further up. Speaks the protocol of
// victim.h.
use std::io::{BufRead, Write};
use std::panic;
use std::sync::atomic::{AtomicU64, Ordering};

static CALLS: AtomicU64 = AtomicU64::new(0);
static DROPPED: AtomicU64 = AtomicU64::new(0);

struct Guard;
impl Drop for Guard {
    fn drop(&mut self) {
        DROPPED.fetch_add(1, Ordering::Relaxed);
    }
}

#[inline(never)]
#[no_mangle]
pub fn panic_odd(x: u64) -> u64 {
    CALLS.fetch_add(1, Ordering::Relaxed);
    if x % 2 == 1 {
        panic!("odd");
    }
    x * 3
}

#[inline(never)]
#[no_mangle]
pub fn panic_middle(x: u64) -> u64 {
    let _guard = Guard;
    panic_odd(x) + 5
}

fn run(rounds: u64) -> (u64, u64) {
    let (mut digest, mut errors) = (0u64, 0u64);
    for round in 0..rounds {
        let value = panic::catch_unwind(|| panic_middle(round)).unwrap_or(round + 1000);
        let expected = if round % 2 == 1 { round + 1000 } else { round * 3 + 5 };
        errors += (value != expected) as u64;
        digest = (digest ^ value).wrapping_mul(0x9E3779B97F4A7C15);
    }
    (digest, errors)
}

fn main() {
    panic::set_hook(Box::new(|_| {}));
    let out = std::io::stdout();
    writeln!(out.lock(), "ready").unwrap();
    for line in std::io::stdin().lock().lines() {
        let line = line.unwrap();
        let mut words = line.split_whitespace();
        match words.next() {
            Some("run") => {
                let (result, errors) = run(words.next().unwrap().parse().unwrap());
                writeln!(out.lock(), "result {}\nerrors {}", result, errors).unwrap();
            }
            Some("counts") => {
                let calls = CALLS.load(Ordering::Relaxed);
                let dropped = DROPPED.load(Ordering::Relaxed);
                writeln!(out.lock(), "panic_odd {}\npanic_middle {}", calls, dropped).unwrap();
            }
            _ => break,
        }
        writeln!(out.lock(), "end").unwrap();
    }
}
