//! The fast path compared with the kernel's forwarding, its masquerade, TAYGA, and Sixway without it.

mod bulk;
mod column;
mod compared;
mod content;
mod frame;
mod latency;
mod left_out;
mod million;
mod new_flows;
mod patterns;
mod scene;
mod settings;
mod small;
mod tables;

pub use tables::run;
