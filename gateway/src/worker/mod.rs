//! Workers: threads with an engine each, which share nothing on the packet path.
//!
//! ```text
//!     queue ─▶ receive ─▶ engine ─▶ send            commands ─▶ (a few each batch) ─▶ answers
//!     inlet ───────▶│       │ ▲                     dumps    ─▶ (some rows each batch) ─▶ pages
//!                           ▼ │
//!                     rings to and from the other workers
//! ```

mod answer;
mod blocks;
mod command;
mod dump;
mod engine;
mod explicit;
mod handover;
mod portless;
mod run;
mod tap;
mod translator;
mod tunnels;

pub use answer::Answer;
pub use blocks::{BlockExchange, exchanges};
pub use command::{Command, LeaseChanges, Mailbox, Post, Unreachable, mailbox};
pub use dump::{Dump, DumpPage};
pub use explicit::{ExplicitAnswer, ExplicitRequest};
pub use handover::{Handover, rings};
pub use run::{BATCH, Worker};
pub use sixway_link::{Clock, Wake};
pub use tap::{DropSample, Watch};
pub use translator::{
    BindingEntry, Edited, Position, Report, Scan, SessionEntry, SubscriberEntry, Table, TeredoPage,
    Translator,
};
pub use tunnels::{ControlSender, Inlet, InletAt, InletWatch, TunnelSet};
