//! Questions and replies of a made-up zone, in octets: what is right about a name follows from its number, so everyone can know it.

use std::net::{Ipv4Addr, Ipv6Addr};

/// What follows each name.
pub const ZONE: &str = "crowd.test";
/// Where lies point to.
pub const LIE: Ipv4Addr = Ipv4Addr::new(66, 6, 6, 6);
/// The DNS64's prefix.
pub const PREFIX: &str = "2001:db8:64::/96";

pub const A: u16 = 1;
pub const AAAA: u16 = 28;
const SOA: u16 = 6;
const OPT: u16 = 41;

/// A name of the zone.
pub fn name(number: u16) -> String {
    format!("host-{number}.{ZONE}")
}

/// What a client is to get for the AAAA records of such a name; `None`: there is no such name.
pub fn right(number: u16) -> Option<Ipv6Addr> {
    match number % 8 {
        6 => None,
        7 => Some(six(number)),
        _ => Some(synthesised(four(number))),
    }
}

/// The address that a DNS64 makes.
pub fn synthesised(four: Ipv4Addr) -> Ipv6Addr {
    let [a, b, c, d] = four.octets().map(u16::from);
    Ipv6Addr::new(0x2001, 0xdb8, 0x64, 0, 0, 0, a << 8 | b, c << 8 | d)
}

/// Its A record.
pub fn four(number: u16) -> Ipv4Addr {
    let [high, low] = number.to_be_bytes();
    Ipv4Addr::new(45, 64, high, low)
}

fn six(number: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0xaaaa, 0, 0, 0, 0, number)
}

/// A question as it came.
#[derive(Clone)]
pub struct Asked {
    /// The message's number.
    pub id: u16,
    /// Name, type, class, as asked.
    pub question: Vec<u8>,
    /// The name in lower case.
    pub name: String,
    pub kind: u16,
    /// Whether it has an OPT record.
    pub extended: bool,
}

impl Asked {
    /// The first question of a message.
    pub fn read(message: &[u8]) -> Option<Self> {
        let mut at = 12;
        let mut labels = Vec::new();
        loop {
            let length = usize::from(*message.get(at)?);
            at += 1;
            if length == 0 {
                break;
            }
            labels.push(String::from_utf8_lossy(message.get(at..at + length)?).to_ascii_lowercase());
            at += length;
        }
        let kind = u16::from_be_bytes([*message.get(at)?, *message.get(at + 1)?]);
        Some(Self {
            id: u16::from_be_bytes([*message.first()?, *message.get(1)?]),
            question: message.get(12..at + 4)?.to_vec(),
            name: labels.join("."),
            kind,
            extended: message.get(10..12)? != [0, 0],
        })
    }

    /// The number of the name, if it is one of ours.
    fn number(&self) -> Option<u16> {
        self.name.strip_suffix(ZONE)?.strip_suffix('.')?.strip_prefix("host-")?.parse().ok()
    }

    /// A reply to it, to be filled.
    pub fn reply(&self, code: u8) -> Reply {
        let mut octets = self.id.to_be_bytes().to_vec();
        octets.extend([0x81, 0x80 | code, 0, 1, 0, 0, 0, 0, 0, 0]);
        octets.extend(&self.question);
        Reply { octets, extended: self.extended }
    }

    /// What is right.
    pub fn honest(&self) -> Vec<u8> {
        let Some(number) = self.number() else { return self.reply(5).done() };
        let negative = |code| self.reply(code).authority(SOA, &soa(), 0xc00d + self.first_label()).done();
        match (number % 8, self.kind) {
            (6, _) => negative(3),
            (7, AAAA) => self.reply(0).answer(AAAA, &six(number).octets()).done(),
            (_, A) => self.reply(0).answer(A, &four(number).octets()).done(),
            (_, _) => negative(0),
        }
    }

    /// The same in lower case.
    pub fn in_lower_case(&self) -> Self {
        let question = [&wire(&self.name)[..], &self.question[self.question.len() - 4..]].concat();
        Self { question, ..self.clone() }
    }

    /// What is right about A records, in a reply that repeats no question.
    pub fn without_question(&self) -> Vec<u8> {
        let mut octets = self.reply(0).done();
        octets[5] = 0;
        octets[11] = 0;
        octets.truncate(12);
        octets
    }

    fn first_label(&self) -> u16 {
        self.question.first().copied().map_or(0, u16::from)
    }
}

/// A reply that grows.
pub struct Reply {
    octets: Vec<u8>,
    extended: bool,
}

impl Reply {
    /// A record of the name that was asked for.
    pub fn answer(self, kind: u16, data: &[u8]) -> Self {
        self.record(6, &[0xc0, 0x0c], kind, data)
    }

    /// A record of another name.
    pub fn answer_of(self, owner: &str, kind: u16, data: &[u8]) -> Self {
        self.record(6, &wire(owner), kind, data)
    }

    fn authority(self, kind: u16, data: &[u8], owner: u16) -> Self {
        self.record(8, &owner.to_be_bytes(), kind, data)
    }

    /// The same in the authority section.
    pub fn authority_of(self, owner: &str, kind: u16, data: &[u8]) -> Self {
        self.record(8, &wire(owner), kind, data)
    }

    /// The same in the additional section.
    pub fn additional_of(self, owner: &str, kind: u16, data: &[u8]) -> Self {
        self.record(10, &wire(owner), kind, data)
    }

    /// TC is set.
    pub fn truncated(mut self) -> Self {
        self.octets[2] |= 2;
        self
    }

    fn record(mut self, count_at: usize, owner: &[u8], kind: u16, data: &[u8]) -> Self {
        self.octets[count_at + 1] += 1;
        self.octets.extend(owner);
        self.octets.extend(kind.to_be_bytes());
        self.octets.extend([0, 1, 0, 0, 1, 44]);
        self.octets.extend((data.len() as u16).to_be_bytes());
        self.octets.extend(data);
        self
    }

    /// Its octets.
    pub fn done(mut self) -> Vec<u8> {
        if self.extended {
            self.octets[11] += 1;
            self.octets.push(0);
            self.octets.extend(OPT.to_be_bytes());
            self.octets.extend([4, 208, 0, 0, 0, 0, 0, 0]);
        }
        self.octets
    }
}

/// A name as in a message, uncompressed.
pub fn wire(name: &str) -> Vec<u8> {
    let mut octets = Vec::new();
    for label in name.split('.') {
        octets.push(label.len() as u8);
        octets.extend(label.as_bytes());
    }
    octets.push(0);
    octets
}

fn soa() -> Vec<u8> {
    let mut data = vec![0, 0];
    [1_u32, 3_600, 600, 86_400, 60].into_iter().for_each(|number| data.extend(number.to_be_bytes()));
    data
}

/// A query for AAAA records.
pub fn query(id: u16, name: &str) -> Vec<u8> {
    let mut octets = id.to_be_bytes().to_vec();
    octets.extend([1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    octets.extend(wire(name));
    octets.extend([0, AAAA as u8, 0, 1]);
    octets
}
