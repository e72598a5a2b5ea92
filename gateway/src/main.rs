//! The `sixway` program: see the library's `command` for what it understands.
use std::process::ExitCode;

fn main() -> ExitCode {
    sixway::command::run(std::env::args_os())
}
