//! The sixway gateway.
fn main() {}
