//! Workers: threads with an engine each, which share nothing on the packets' path.
//!
//! ```text
//!     queue ─▶ receive ─▶ engine ─▶ send            commands ─▶ (a few each batch) ─▶ answers
//!     inlet ───────▶│       │ ▲                     dumps    ─▶ (some rows each batch) ─▶ pages
//!                           ▼ │
//!                     rings to and from the other workers
//! ```

mod blocks;
mod clock;
mod command;
mod dump;
mod engine;
mod handover;
mod run;
mod translator;
mod tunnels;
mod wake;

pub use blocks::{BlockExchange, exchanges};
pub use clock::Clock;
pub use command::{Answer, Command, Mailbox, Post, Unreachable, mailbox};
pub use dump::{Dump, DumpPage};
pub use handover::{Handover, rings};
pub use run::{BATCH, Worker};
pub use translator::{BindingEntry, Edited, Position, Report, SessionEntry, Table, Translator};
pub use tunnels::{ControlSender, Inlet, TunnelSet};
pub use wake::Wake;
