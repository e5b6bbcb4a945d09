// SPDX-License-Identifier: Apache-2.0
// Panics, and says what it met on the way. Argument: the way in which it ends.
use std::panic;
use std::thread;

struct Told(&'static str);

impl Drop for Told {
    #[inline(never)]
    fn drop(&mut self) {
        println!("drop of {}, panicking: {}", self.0, thread::panicking());
    }
}

#[inline(never)]
fn deep(depth: u32) -> u32 {
    let _told = Told("deep");
    if depth == 0 {
        panic!("at the bottom");
    }
    deep(depth - 1) + 1
}

#[inline(never)]
fn index(values: &[u32], at: usize) -> u32 {
    let _told = Told("index");
    values[at]
}

fn caught() {
    for i in 0..6 {
        let result = panic::catch_unwind(|| match i % 2 {
            0 => deep(i),
            _ => index(&[1, 2], i as usize),
        });
        println!("{}: {}", i, result.is_err());
    }
}

fn in_threads() {
    for i in 0..4 {
        let named = thread::Builder::new().name(format!("t{}", i));
        let result = named.spawn(move || deep(i)).unwrap().join();
        let text = result.err().and_then(|it| it.downcast_ref::<&str>().map(|it| it.to_string()));
        println!("{}: {:?}", i, text);
    }
}

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("caught") => caught(),
        Some("threads") => in_threads(),
        _ => println!("{}", deep(3)),
    }
}
