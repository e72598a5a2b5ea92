//! The overload filter: while an engine is overloaded, packets of heavy senders are dropped before they enter its queue, so that dropping costs the
//! engine nothing and others do not wait behind them.
//!
//! A TUN device calls an eBPF program for each packet that it is about to queue (TUNSETFILTEREBPF, Linux 4.16). The program decides as
//! [`sixway_dataplane::fair_share::FilterRule::admits`] does. Its tables, one for each queue, are memory that the kernel and the worker of the
//! queue share (an array with BPF_F_MMAPABLE, Linux 5.5). What the worker writes is valid for [`VALID`] only: a program that stays with its
//! device while no process reads the queue drops nothing. The program needs the time, which programs that are not under the GPL may ask for since Linux 5.8.

mod attach;
mod layout;
mod program;
mod table;

pub(super) use attach::{attach, detach};

pub use attach::loaded;
pub use program::Senders;
pub use table::{OverloadFilter, VALID};
