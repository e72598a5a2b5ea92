//! The closed list of problems that `sixway show` can name; the table in `docs/operations.md` is made from it.

macro_rules! problems {
    ($($(#[doc = $doc:literal])+ $kind:ident = $name:literal,)+) => {
        /// What sort of problem it is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum ProblemKind {
            $($(#[doc = $doc])+ $kind,)+
        }

        impl ProblemKind {
            /// Every kind.
            pub const ALL: &[Self] = &[$(Self::$kind,)+];

            /// The word for programs, which stays the same.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$kind => $name,)+ }
            }

            /// Its meaning.
            pub const fn help(self) -> &'static str {
                match self { $(Self::$kind => concat!($($doc,)+).trim_ascii(),)+ }
            }
        }
    };
}

problems! {
    /// A router in use does not answer ARP or neighbour discovery.
    Neighbour = "neighbour",
    /// Most NAT64 sessions of the last minute have packets out and none back, or no packet came back for five seconds.
    NoAnswers = "no_answers",
    /// A pool had no free port for a new binding, within the last minute.
    PortPoolEmpty = "port_pool_empty",
    /// A session table was full, within the last minute.
    SessionTableFull = "session_table_full",
    /// A table of bindings was full, within the last minute.
    BindingTableFull = "binding_table_full",
    /// Packets from outside reached their part of the session table, within the last minute.
    OutsideSessionsFull = "outside_sessions_full",
    /// A dynamic pool had no free address, within the last minute.
    DynamicPoolEmpty = "dynamic_pool_empty",
    /// The memory for fragments was exhausted, within the last minute.
    FragmentMemory = "fragment_memory",
    /// A source, a subscriber, or an address that packets come to from outside, had its share of the memory for fragments, within the last minute.
    FragmentShare = "fragment_share",
    /// A subscriber was at one of its limits, within the last minute.
    SubscriberLimit = "subscriber_limit",
    /// A subscriber had most of a session table or of an address's ports, and the rest was reserved for others, within the last minute.
    SubscriberShare = "subscriber_share",
    /// The alarm of a pool's ports is raised (`pool.alarm_at`), or 95 % of one worker's are in use (a warning); 95 % of the pool (an error).
    PoolPorts = "pool_ports",
    /// The alarm of a session table is raised (`pool.alarm_at`) or it is 95 % full (a warning), or full (an error).
    Sessions = "sessions",
    /// The alarm of a table of bindings is raised (`pool.alarm_at`), or it or a dynamic pool is 95 % full (a warning), or full (an error).
    Bindings = "bindings",
    /// Of the addresses of a NAT46's pool that all clients share, 80 % are in use or resting (a warning), or all (an error).
    PoolAddresses = "pool_addresses",
    /// Rules of this host drop the gateway's packets (an error) or give them another source (a warning), as a test in a separate network namespace shows. The test is repeated when the rules have changed, at most every 30 s; `sixway doctor` runs it immediately.
    PacketFilter = "packet_filter",
    /// The last reload was rolled back to the configuration before it.
    Reload = "reload",
    /// The VRF of a realm does not exist, is down or cannot be used.
    Vrf = "vrf",
    /// Other programs repeatedly change a setting of the host, and the gateway no longer restores it.
    LeftAlone = "left_alone",
    /// A tunnel, or a pool that follows an interface, waits for an address on an interface.
    AwaitedAddress = "awaited_address",
    /// The AFTR of a B4 does not answer, and no other AFTR does.
    SilentAftr = "silent_aftr",
    /// An upstream of the DNS64 does not answer; an error if none does.
    UpstreamDown = "upstream_down",
    /// A warning of the DNS64, such as a trust anchor that cannot be updated.
    Dns64 = "dns64",
    /// The socket of a Teredo relay or client cannot be opened, its address is not on this host, or the client has no address, except because of native IPv6.
    Teredo = "teredo",
    /// An address of the Teredo server is not on this host, or another program has its port (errors), it is over its total rate, or discards most of many datagrams, within the last minute.
    TeredoServer = "teredo_server",
    /// A socket of the PCP server is not open, or the server failed and restarts.
    Pcp = "pcp",
    /// The fast path could not be started, is suspended, was removed, or is not on an interface where it should be.
    FastPath = "fast_path",
    /// The lease file of a concentrator or host of 4over6 cannot be written, or Kea's cannot be read.
    LeaseFile = "lease_file",
    /// A host of 4over6 has no lease because no server is known or answers, or its lease is bound to another address than `local` (errors); it is not renewed, or a concentrator refused queries from senders other than its clients within two minutes
    /// (warnings).
    Lease = "lease",
    /// A server of the event log cannot be reached (a warning), its file cannot be written, or events were lost within the last minute
    /// (errors).
    EventLog = "event_log",
}
