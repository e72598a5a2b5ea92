//! Tunnels of IPv6 in IPv4, Sixway at one end and a real Linux kernel at the other.

pub mod capture;
pub mod carriage;
mod configured;
mod isatap;
mod path;
mod six_rd;
mod six_to_four;
mod super_frames;

use crate::Interop;

pub fn tests() -> Vec<Interop> {
    [six_to_four::TESTS, configured::TESTS, six_rd::TESTS, isatap::TESTS, path::TESTS, super_frames::TESTS]
        .concat()
}
