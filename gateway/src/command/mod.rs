//! The command line. Exit status 0: success; 1: failure; 2: invalid request.

mod command_line;
mod configuration_file;
mod dns64;
mod doctor;
mod down;
mod ds_lite;
mod edit;
mod failure;
mod fast_path;
mod generate;
mod live;
mod nat;
mod output;
mod pool;
mod reload;
mod run_directory;
mod run_gateway;
mod show;
mod show_arguments;
mod six_rd;
mod support;
mod trace;
mod up;
mod warnings;

pub use command_line::run;
pub use run_directory::RUN_DIRECTORY;
