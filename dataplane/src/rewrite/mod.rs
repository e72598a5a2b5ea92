//! Executes what a mechanism decided, and says what the gateway itself has to say.

pub mod icmp_error;
