//! The state of a NAT: bindings, sessions, ports, and their lifetimes.
//!
//! The words are RFC 6146's: a *binding* joins an inside endpoint to an outside endpoint; a *session* is a binding and a
//! remote endpoint; a *BIB* is the bindings of one protocol.

mod addresses_in_use;
mod binding;
mod binding_kind;
mod binding_marks;
mod block_policy;
mod companion_ports;
mod companions;
mod config;
mod deterministic;
mod draining;
mod engine;
mod events;
mod explicit;
mod explicit_binding;
mod free_set;
mod growing_index;
mod half_open;
mod in_blocks;
mod index;
mod inside_key;
mod keyed;
mod mapped;
mod not_adopted;
pub mod offload;
mod offloaded;
mod offloading;
mod ownership;
mod permit;
mod pool;
mod pool_blocks;
mod port_blocks;
mod port_ledger;
mod port_plane;
mod protocol;
mod quarantine;
mod rate;
mod recording;
mod remote_filters;
mod revival;
mod rows;
mod session;
mod session_links;
mod session_state;
mod sides;
mod slab;
mod softwire;
mod softwires;
mod spread;
mod state_limits;
mod state_tables;
mod static_binding;
mod stored_syn;
mod subscriber_counts;
mod subscriber_table;
mod timeouts;
mod wheel;

pub use crate::direction::Direction;
pub use addresses_in_use::AddressesInUse;
pub use block_policy::{BlockPolicy, LARGEST_BLOCK, MOST_BLOCKS, SMALLEST_BLOCK, whole_blocks};
pub use config::{Config, SubscriberPolicy};
pub use deterministic::{Deterministic, DeterministicFault};
pub use draining::{Draining, DrainingRow};
pub use engine::{Arriving, Blocks, Engine, Mechanism, Ports, Probe, Side};
pub use events::{BindingEvent, BlockEvent, EventSink, NatEvent, PortlessEvent, SessionEvent};
pub use explicit_binding::{BoundEndpoint, ExplicitBinding, NotBound, RemoteFilter, WantedOutside};
pub use inside_key::{HostKey, InsideHost, InsideKey, Named, Subscriber};
pub use not_adopted::NotAdopted;
pub use ownership::{BlockMove, Ownership, PORTS_PER_BLOCK};
pub use permit::Filtering;
pub use pool::PoolConfig;
pub use port_blocks::{AddressBlocks, BlockCounts};
pub use port_ledger::PortLedger;
pub use port_plane::PortRange;
pub use protocol::NatProtocol;
pub use revival::SavedSession;
pub use rows::{BindingRow, Occupancy, Selection, SessionRow};
pub use session_state::{Segment, SessionState, Timer, next_state};
pub use sides::{Inside, Outside};
pub use softwire::{Softwire, SoftwireHost, SoftwireNetwork};
pub use softwires::{MOST_OF_SUBSCRIBER, SoftwireId, Softwires, Sought};
pub use spread::Spread;
pub use state_limits::{StateLimits, SubscriberLimits};
pub use state_tables::SilentSession;
pub use static_binding::{StaticBinding, StaticBindingError};
pub use stored_syn::{STORED_OCTETS, STORED_SYNS};
pub use subscriber_table::{RowBlocks, SubscriberRow};
pub use timeouts::{
    FRAGMENT_MIN, ICMP_DEFAULT, PortTimeout, QUARANTINE, TCP_EST, TCP_INCOMING_SYN, TCP_OPENING_MIN,
    TCP_TRANS, TimeoutTooShort, Timeouts, UDP_DEFAULT, UDP_MIN, UDP_WELL_KNOWN_MIN,
};

pub(crate) use engine::Entry;
pub(crate) use index::Index;
pub(crate) use keyed::siphash_word;
pub(crate) use slab::Slab;
pub(crate) use state_tables::Fired;
pub(crate) use subscriber_counts::SubscriberCounts;
