//! The `sixway` program: see the library's `command` for what it understands.
use std::process::ExitCode;

fn main() -> ExitCode {
    if cfg!(target_feature = "crt-static") {
        sixway_link::resolve_without_modules();
    }
    sixway::command::run(std::env::args_os())
}
