//! The sixway lab.
fn main() {}
