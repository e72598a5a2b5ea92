//! The log of events of NAT64 and NAT44: the only place where addresses of hosts are written by design.
//!
//! ```text
//!     worker ─▶ ring ─┐                       ┌─▶ file_sink ─▶ json_lines ─▶ file, rotation, index   ◀─ who
//!     worker ─▶ ring ─┼─▶ recorder (a thread) ┼─▶ remote (a thread) ─▶ syslog ─▶ transport
//!     control ────────┘      records          └─▶ remote (a thread) ─▶ ipfix  ─▶ transport
//!                                                       └─▶ spool
//! ```
//!
//! Nothing here blocks a worker: a full ring, a full queue and a full spool lose events, which are counted, and the number is logged.

mod backlog;
mod bounded_thread;
mod check;
mod clock_watch;
mod continuing;
mod encode;
mod file_access;
mod file_sink;
mod index;
mod ipfix;
mod ipfix_limits;
mod ipfix_template;
mod json_lines;
mod listing;
mod notice;
mod phase;
mod port_block;
mod portless;
mod quota;
mod record;
mod recorder;
mod remote;
mod ring;
mod rotation;
mod search;
mod servers;
mod sink_state;
mod spool;
mod syslog;
mod tls;
mod transport;
mod who;

pub use check::faults_of;
pub use listing::Listed;
pub use notice::{AlarmNotice, LeaseNotice, Notice};
pub use port_block::PortMapping;
pub use quota::Quota;
pub use record::now_text;
pub use recorder::{EventLog, Source};
pub use who::{
    Answer, Last, LeaseQuestion, PortlessAnswer, PortlessQuestion, PortlessSession, Question, ask, ask_lease,
    ask_portless,
};
