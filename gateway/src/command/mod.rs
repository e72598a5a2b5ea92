//! The command line: what `sixway` understands. Exit status 0: done; 1: it failed; 2: the request was wrong.

mod command_line;
mod dns64;
mod failure;
mod fast_path;
mod output;
mod run_directory;
mod show;
mod show_arguments;
mod six_rd;

pub use command_line::run;
pub use run_directory::RUN_DIRECTORY;
