//! The command line. Exit status 0: success; 1: failure; 2: invalid request.

mod command_line;
mod dns64;
mod doctor;
mod failure;
mod fast_path;
mod generate;
mod output;
mod run_directory;
mod show;
mod show_arguments;
mod six_rd;
mod trace;

pub use command_line::run;
pub use run_directory::RUN_DIRECTORY;
