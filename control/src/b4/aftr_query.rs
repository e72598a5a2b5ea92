//! The AAAA records of the AFTR's name, as a resolver returns them (RFC 6334 §5, RFC 3596).

use core::fmt;
use core::net::Ipv6Addr;
use core::time::Duration;
use domain::base::iana::Rcode;
use domain::base::{Message, Name, Rtype, ToName as _};
use domain::rdata::Aaaa;
use sixway_dataplane::source_check::is_martian6;

/// The largest datagram that a reply may be (RFC 9715 §3.1).
const PAYLOAD: u16 = 1_232;

/// RD (RFC 1035 §4.1.1).
const RECURSION_DESIRED: u16 = 0x0100;

/// How soon a name is resolved again at the earliest, and at the latest.
const TTL: [Duration; 2] = [Duration::from_secs(30), Duration::from_secs(86_400)];

/// The addresses of a name, and how long they are valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AftrAddresses {
    /// The usable addresses, in the order of the reply.
    pub addresses: Vec<Ipv6Addr>,
    /// When to query again.
    pub again: Duration,
}

/// Why a reply gives no addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyFault {
    /// It is not the reply to this query, or cannot be parsed: continue to wait.
    Foreign,
    /// It was truncated: query by TCP.
    Truncated,
    /// The resolver says that there is no such name.
    NoSuchName,
    /// The name has no AAAA record with a usable address.
    NoAddress,
    /// The resolver failed or refuses.
    Failed,
}

impl fmt::Display for ReplyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Foreign => "no valid reply",
            Self::Truncated => "the reply was cut",
            Self::NoSuchName => "the name does not exist",
            Self::NoAddress => "the name has no IPv6 address that a host can have",
            Self::Failed => "the name server failed or refuses",
        })
    }
}

/// A query.
#[derive(Clone, Debug)]
pub struct AftrQuery {
    name: Name<Vec<u8>>,
    id: u16,
}

impl AftrQuery {
    /// For the AAAA records of a name, which is absolute: no search list applies. `id` is random. `None`: not a name.
    pub fn new(name: &str, id: u16) -> Option<Self> {
        let name = Name::<Vec<u8>>::vec_from_str(name).ok()?;
        (!name.is_root()).then_some(Self { name, id })
    }

    /// Its octets.
    pub fn message(&self) -> Vec<u8> {
        let mut message = Vec::with_capacity(12 + self.name.len() + 15);
        for field in [self.id, RECURSION_DESIRED, 1, 0, 0, 1] {
            message.extend_from_slice(&field.to_be_bytes());
        }
        message.extend_from_slice(self.name.as_slice());
        message.extend_from_slice(&[0, 28, 0, 1]); // AAAA, IN
        let [high, low] = PAYLOAD.to_be_bytes();
        message.extend_from_slice(&[0, 0, 41, high, low, 0, 0, 0, 0, 0, 0]);
        message
    }

    /// Reads a reply.
    ///
    /// # Errors
    /// Why it gives no addresses.
    pub fn read(&self, reply: &[u8]) -> Result<AftrAddresses, ReplyFault> {
        let message = Message::from_octets(reply).map_err(|_| ReplyFault::Foreign)?;
        let header = message.header();
        let question = message.sole_question().map_err(|_| ReplyFault::Foreign)?;
        if header.id() != self.id
            || !header.qr()
            || question.qtype() != Rtype::AAAA
            || *question.qname() != self.name
        {
            return Err(ReplyFault::Foreign);
        }
        if header.tc() {
            return Err(ReplyFault::Truncated);
        }
        match header.rcode() {
            Rcode::NOERROR => {}
            Rcode::NXDOMAIN => return Err(ReplyFault::NoSuchName),
            _ => return Err(ReplyFault::Failed),
        }
        let owner = message.canonical_name().ok_or(ReplyFault::NoAddress)?;
        let answer = message.answer().map_err(|_| ReplyFault::Foreign)?;
        let (mut addresses, mut ttl) = (Vec::new(), TTL[1]);
        for record in answer {
            let record = record.map_err(|_| ReplyFault::Foreign)?;
            // The TTL of a CNAME record counts, too.
            ttl = ttl.min(Duration::from_secs(record.ttl().as_secs().into()));
            let is_its = record.owner().name_eq(&owner);
            if let Ok(Some(record)) = record.to_record::<Aaaa>() {
                let address = record.data().addr();
                if is_its && is_usable(address) && !addresses.contains(&address) {
                    addresses.push(address);
                }
            }
        }
        if addresses.is_empty() {
            return Err(ReplyFault::NoAddress);
        }
        Ok(AftrAddresses { addresses, again: ttl.max(TTL[0]) })
    }
}

/// Whether an AFTR can have the address: not one that contains an IPv4 address, which the tunnel's packets would reach through a translator or not at all.
fn is_usable(address: Ipv6Addr) -> bool {
    const NAT64: u128 = 0x0064_ff9b_0000_0000_0000_0000;
    let first96 = address.to_bits() >> 32;
    !is_martian6(address) && !matches!(first96, 0 | 0xffff | NAT64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record of a reply: owner, type, TTL, data.
    type Record<'r> = (&'r str, u16, u32, &'r [u8]);

    fn name(text: &str) -> Vec<u8> {
        Name::<Vec<u8>>::vec_from_str(text).unwrap().as_slice().to_vec()
    }

    fn reply(flags: u16, asked: &str, records: &[Record<'_>]) -> Vec<u8> {
        let mut octets = Vec::new();
        for field in [7, flags, 1, records.len() as u16, 0, 0] {
            octets.extend_from_slice(&field.to_be_bytes());
        }
        octets.extend(name(asked));
        octets.extend([0, 28, 0, 1]);
        for (owner, kind, ttl, data) in records {
            octets.extend(name(owner));
            octets.extend(kind.to_be_bytes());
            octets.extend([0, 1]);
            octets.extend(ttl.to_be_bytes());
            octets.extend((data.len() as u16).to_be_bytes());
            octets.extend(*data);
        }
        octets
    }

    fn query() -> AftrQuery {
        AftrQuery::new("aftr.example", 7).unwrap()
    }

    fn v6(text: &str) -> Ipv6Addr {
        text.parse().unwrap()
    }

    #[test]
    fn the_query_asks_for_aaaa_of_the_absolute_name() {
        let message = query().message();
        assert_eq!(message[..12], [0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1]);
        assert_eq!(message[12..30], *b"\x04aftr\x07example\x00\x00\x1c\x00\x01");
        assert!(AftrQuery::new(".", 1).is_none() && AftrQuery::new("a..b", 1).is_none());
    }

    #[test]
    fn all_usable_addresses_are_read_with_the_least_ttl_on_the_way_to_them() {
        let (one, two) = (v6("2001:db8:a::1").octets(), v6("2001:db8:a::2").octets());
        let (mapped, local) = (v6("::ffff:192.0.2.1").octets(), v6("fe80::1").octets());
        let other = v6("2001:db8:bad::1").octets();
        let records: [Record<'_>; 6] = [
            ("AFTR.example", 5, 90, &name("real.example")),
            ("real.example", 28, 300, &one),
            ("real.example", 28, 300, &mapped),
            ("real.example", 28, 300, &local),
            ("real.example", 28, 300, &two),
            ("elsewhere.example", 28, 300, &other),
        ];
        let read = query().read(&reply(0x8180, "aftr.EXAMPLE", &records)).unwrap();
        assert_eq!(read.addresses, [v6("2001:db8:a::1"), v6("2001:db8:a::2")]);
        assert_eq!(read.again, Duration::from_secs(90));
    }

    #[test]
    fn a_ttl_of_zero_or_of_a_month_is_kept_within_bounds() {
        let one = v6("2001:db8:a::1").octets();
        for (ttl, again) in [(0, 30), (2_592_000, 86_400), (600, 600)] {
            let read = query().read(&reply(0x8180, "aftr.example", &[("aftr.example", 28, ttl, &one)]));
            assert_eq!(read.unwrap().again, Duration::from_secs(again));
        }
    }

    #[test]
    fn replies_to_others_and_replies_without_addresses_say_so() {
        let one = v6("2001:db8:a::1").octets();
        let records: [Record<'_>; 1] = [("aftr.example", 28, 60, &one)];
        let with = |flags, asked| query().read(&reply(flags, asked, &records));
        assert_eq!(with(0x8180, "other.example"), Err(ReplyFault::Foreign));
        assert_eq!(with(0x0180, "aftr.example"), Err(ReplyFault::Foreign));
        assert_eq!(with(0x8380, "aftr.example"), Err(ReplyFault::Truncated));
        assert_eq!(with(0x8183, "aftr.example"), Err(ReplyFault::NoSuchName));
        assert_eq!(with(0x8182, "aftr.example"), Err(ReplyFault::Failed));
        assert_eq!(query().read(&reply(0x8180, "aftr.example", &[])), Err(ReplyFault::NoAddress));
        let mut forged = reply(0x8180, "aftr.example", &records);
        forged[1] = 8;
        assert_eq!(query().read(&forged), Err(ReplyFault::Foreign));
        let mut of_another_type = reply(0x8180, "aftr.example", &records);
        of_another_type[27] = 1;
        assert_eq!(query().read(&of_another_type), Err(ReplyFault::Foreign));
    }

    #[test]
    fn a_reply_cut_or_changed_anywhere_is_a_fault_or_gives_usable_addresses() {
        let one = v6("2001:db8:a::1").octets();
        let whole = reply(0x8180, "aftr.example", &[("aftr.example", 28, 60, &one)]);
        for end in 0..whole.len() {
            assert!(query().read(&whole[..end]).is_err(), "{end}");
        }
        for (at, bit) in (0..whole.len()).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
            let mut changed = whole.clone();
            changed[at] ^= 1 << bit;
            if let Ok(read) = query().read(&changed) {
                assert!(!read.addresses.is_empty() && read.addresses.iter().all(|one| is_usable(*one)));
            }
        }
    }

    #[test]
    fn a_loop_of_aliases_ends() {
        let records: [Record<'_>; 2] =
            [("aftr.example", 5, 60, &name("b.example")), ("b.example", 5, 60, &name("aftr.example"))];
        assert_eq!(query().read(&reply(0x8180, "aftr.example", &records)), Err(ReplyFault::NoAddress));
    }
}
