//! The lab: networks of namespaces on one machine, peers to compare with, probes, and the experiments made of them. It drives `sixway` from
//! outside, as a user would.

pub mod affinity;
pub mod analyse;
pub mod bench;
pub mod demo;
pub mod device;
pub mod dns64;
pub mod experiment;
pub mod failure;
pub mod fast_path;
pub mod forwarder;
pub mod gateway;
pub mod guest;
pub mod impair;
pub mod interrupt;
pub mod kernel_peer;
pub mod load;
pub mod measure;
pub mod name_service;
pub mod namespace;
pub mod packet;
pub mod probe;
pub mod process;
pub mod programs;
pub mod report;
pub mod results;
pub mod rootless;
pub mod run;
pub mod six_to_four;
pub mod sixway;
pub mod softwires;
pub mod teredo;
pub mod teredo_stub;
pub mod terminal;
pub mod topology;
