//! How large a NAT's tables may become.

/// Maximum numbers of entries. When one is reached, new entries are refused; live ones are never evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateLimits {
    /// Sessions.
    pub sessions: u32,
    /// Bindings.
    pub bindings: u32,
    /// Dynamic bindings of a subscriber (RFC 6888 REQ-4); 0: unlimited.
    pub bindings_per_subscriber: u32,
    /// Ports in quarantine (RFC 6888 REQ-8). When it is reached, the one that is there longest leaves it early.
    pub quarantined_ports: u32,
}

impl Default for StateLimits {
    /// 1,048,576 sessions, bindings and quarantined ports, bindings unlimited for a subscriber.
    fn default() -> Self {
        Self { sessions: 1 << 20, bindings: 1 << 20, bindings_per_subscriber: 0, quarantined_ports: 1 << 20 }
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
