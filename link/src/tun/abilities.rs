//! Offloads of the kernel and a TUN device: which GSO packets are passed unsegmented.

use std::fmt;

/// What a TUN device was opened with, as far as configuration and kernel allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abilities {
    /// Packets carry a virtio_net header. Without it, nothing else is possible.
    pub vnet: bool,
    /// The kernel hands over unfinished checksums.
    pub checksum: bool,
    /// TCP GSO packets (TSO4, TSO6, with ECN).
    pub tso: bool,
    /// UDP GSO packets (USO4, USO6: Linux 6.2).
    pub uso: bool,
}

impl Abilities {
    /// Everything.
    pub const ALL: Self = Self { vnet: true, checksum: true, tso: true, uso: true };
    /// Plain packets.
    pub const NONE: Self = Self { vnet: false, checksum: false, tso: false, uso: false };

    /// The steps down from these abilities, best first, by what kernels have learnt one after the other: UDP GSO packets
    /// last. The last step asks for plain packets with a virtio_net header, or without one if that is not wanted.
    pub fn steps(self) -> impl Iterator<Item = Self> {
        let tcp = Self { uso: false, ..self };
        let checksum = Self { tso: false, ..tcp };
        let plain = Self { checksum: false, ..checksum };
        let mut last = None;
        [self, tcp, checksum, plain]
            .into_iter()
            .map(Self::consistent)
            .filter(move |step| last.replace(*step) != Some(*step))
    }

    /// The argument of TUNSETOFFLOAD.
    pub const fn offload_flags(self) -> libc::c_uint {
        let mut flags = 0;
        if self.checksum {
            flags |= libc::TUN_F_CSUM;
        }
        if self.tso {
            flags |= libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
        }
        if self.uso {
            flags |= libc::TUN_F_USO4 | libc::TUN_F_USO6;
        }
        flags
    }

    /// GSO packets need unfinished checksums, and these need the header.
    const fn consistent(self) -> Self {
        let checksum = self.vnet && self.checksum;
        Self { vnet: self.vnet, checksum, tso: checksum && self.tso, uso: checksum && self.uso }
    }
}

impl fmt::Display for Abilities {
    /// The kinds of GSO packets that pass whole: "TCP, UDP", "TCP" or "none".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.tso, self.uso) {
            (true, true) => "TCP, UDP",
            (true, false) => "TCP",
            (false, true) => "UDP",
            (false, false) => "none",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steps_lead_from_everything_to_plain_packets() {
        let steps: Vec<_> =
            Abilities::ALL.steps().map(|step| (step.to_string(), step.offload_flags())).collect();
        assert_eq!(
            steps,
            [("TCP, UDP".into(), 0x6f), ("TCP".into(), 0x0f), ("none".into(), 0x01), ("none".into(), 0)]
        );
        assert_eq!(Abilities::NONE.steps().collect::<Vec<_>>(), [Abilities::NONE]);
    }

    #[test]
    fn gso_packets_without_the_header_are_not_asked_for() {
        let impossible = Abilities { vnet: false, ..Abilities::ALL };
        assert_eq!(impossible.steps().collect::<Vec<_>>(), [Abilities::NONE]);
    }
}
