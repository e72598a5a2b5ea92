//! How large a NAT's tables may become.

/// Maximum numbers of entries. When one is reached, new entries are refused; live ones are never evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateLimits {
    /// Sessions.
    pub sessions: u32,
    /// Bindings.
    pub bindings: u32,
    /// What one subscriber may have.
    pub of_subscriber: SubscriberLimits,
    /// Ports in quarantine (RFC 6888 REQ-8). When it is reached, the port that has been in quarantine longest leaves early.
    pub quarantined_ports: u32,
}

/// What one subscriber may have (RFC 6888 REQ-4, REQ-5); 0: unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SubscriberLimits {
    /// Dynamic bindings.
    pub bindings: u32,
    /// Dynamic bindings of each protocol ([`super::NatProtocol`]).
    pub bindings_of: [u32; 3],
    /// Sessions from inside. Packets from outside may create a quarter of it in addition.
    pub sessions: u32,
    /// New bindings a second.
    pub new_bindings_per_second: u32,
    /// New sessions from inside a second.
    pub new_sessions_per_second: u32,
}

impl SubscriberLimits {
    /// Nothing is limited.
    pub const NONE: Self = Self {
        bindings: 0,
        bindings_of: [0; 3],
        sessions: 0,
        new_bindings_per_second: 0,
        new_sessions_per_second: 0,
    };
}

impl Default for StateLimits {
    /// 1,048,576 sessions, bindings and quarantined ports, and nothing limited for a subscriber.
    fn default() -> Self {
        Self {
            sessions: 1 << 20,
            bindings: 1 << 20,
            of_subscriber: SubscriberLimits::NONE,
            quarantined_ports: 1 << 20,
        }
    }
}

impl StateLimits {
    /// The limits of one worker: equal shares, rounded up. That of a subscriber is not divided, since all of its
    /// hosts may belong to one worker.
    #[must_use]
    pub const fn of_each_worker(self, workers: u8) -> Self {
        Self {
            sessions: self.sessions.div_ceil(workers as u32),
            bindings: self.bindings.div_ceil(workers as u32),
            quarantined_ports: self.quarantined_ports.div_ceil(workers as u32),
            ..self
        }
    }
}
