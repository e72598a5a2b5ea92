//! An upstream's replies and a client's queries, written out of text.

use domain::base::iana::{Class, Opcode, Rcode};
use domain::base::{Message, MessageBuilder, Name, Rtype, ToName, Ttl, UnknownRecordData};
use sixway_control::Instant;
use sixway_control::dns64::answer::{Answer, Bounds, Part, Record, Rejection};
use sixway_control::dns64::key::Key;
use std::str::FromStr;

/// A name in wire form.
pub fn wire(name: &str) -> Vec<u8> {
    Name::<Vec<u8>>::from_str(name).unwrap().as_octets().clone()
}

/// Data of a record, as text gives them.
pub fn data(rtype: &str, text: &str) -> (Rtype, Vec<u8>) {
    let kind = Rtype::from_str(rtype).unwrap();
    let words: Vec<&str> = text.split(' ').collect();
    let number = |at: usize| words[at].parse::<u32>().unwrap().to_be_bytes().to_vec();
    let data = match rtype {
        "A" => words[0].parse::<std::net::Ipv4Addr>().unwrap().octets().to_vec(),
        "AAAA" => words[0].parse::<std::net::Ipv6Addr>().unwrap().octets().to_vec(),
        "SOA" => {
            [wire(words[0]), wire(words[1]), number(2), number(3), number(4), number(5), number(6)].concat()
        }
        "MX" => [words[0].parse::<u16>().unwrap().to_be_bytes().to_vec(), wire(words[1])].concat(),
        "RRSIG" => {
            let covered = Rtype::from_str(words[0]).unwrap().to_int().to_be_bytes();
            [&covered[..], &[8, 2], &[0; 12], &[0x12, 0x34], &wire(words[1]), b"signature"].concat()
        }
        "NSEC" => [&wire(words[0])[..], &[0, 1, 0x40]].concat(),
        "TXT" => [&[text.len() as u8][..], text.as_bytes()].concat(),
        _ => wire(words[0]),
    };
    (kind, data)
}

/// What goes into a reply.
#[derive(Clone, Debug)]
pub struct Reply {
    pub name: String,
    pub rtype: String,
    pub rcode: u8,
    pub answer: Vec<String>,
    pub authority: Vec<String>,
}

impl Reply {
    /// Records are "owner ttl type data".
    pub fn to(name: &str, rtype: &str, answer: &[&str], authority: &[&str]) -> Self {
        let own = |records: &[&str]| records.iter().map(|record| (*record).to_owned()).collect();
        Self {
            name: name.to_owned(),
            rtype: rtype.to_owned(),
            rcode: 0,
            answer: own(answer),
            authority: own(authority),
        }
    }

    pub fn rcode(mut self, rcode: u8) -> Self {
        self.rcode = rcode;
        self
    }

    pub fn octets(&self) -> Vec<u8> {
        let mut builder =
            MessageBuilder::from_target(domain::base::StaticCompressor::new(Vec::new())).unwrap();
        builder.header_mut().set_qr(true);
        builder.header_mut().set_ra(true);
        builder.header_mut().set_opcode(Opcode::QUERY);
        builder.header_mut().set_rcode(Rcode::masked_from_int(self.rcode));
        let mut question = builder.question();
        let name = Name::<Vec<u8>>::from_str(&self.name).unwrap();
        question.push((&name, Rtype::from_str(&self.rtype).unwrap(), Class::IN)).unwrap();
        let mut answer = question.answer();
        self.answer.iter().for_each(|record| answer.push(parsed(record)).unwrap());
        let mut authority = answer.authority();
        self.authority.iter().for_each(|record| authority.push(parsed(record)).unwrap());
        authority.finish().into_target()
    }
}

type Parsed = (Name<Vec<u8>>, Class, Ttl, UnknownRecordData<Vec<u8>>);

fn parsed(record: &str) -> Parsed {
    let mut words = record.splitn(4, ' ');
    let mut word = || words.next().unwrap();
    let (owner, ttl, rtype, text) = (word(), word(), word(), word());
    let (rtype, data) = data(rtype, text);
    let ttl = Ttl::from_secs(ttl.parse().unwrap());
    (Name::from_str(owner).unwrap(), Class::IN, ttl, UnknownRecordData::from_octets(rtype, data).unwrap())
}

/// A client's query.
pub fn query(name: &[u8], rtype: &str, edns: Option<(u16, bool)>, flags: [u8; 2]) -> Vec<u8> {
    let rtype = Rtype::from_str(rtype).unwrap().to_int().to_be_bytes();
    let mut message = vec![0x12, 0x34, flags[0], flags[1], 0, 1, 0, 0, 0, 0, 0, u8::from(edns.is_some())];
    message.extend_from_slice(name);
    message.extend_from_slice(&[rtype[0], rtype[1], 0, 1]);
    if let Some((payload, dnssec_ok)) = edns {
        let [p0, p1] = payload.to_be_bytes();
        message.extend_from_slice(&[0, 0, 41, p0, p1, 0, 0, u8::from(dnssec_ok) << 7, 0, 0, 0]);
    }
    message
}

/// A message's records as text, by section, with OPT records left out.
pub fn shown(message: &[u8]) -> [Vec<String>; 3] {
    let message = Message::from_octets(message).unwrap();
    let (_, answer, authority, additional) = message.sections().unwrap();
    [answer, authority, additional].map(|section| {
        section.map(|record| show(&record.unwrap())).filter(|record| !record.contains(" OPT ")).collect()
    })
}

fn show(record: &domain::base::ParsedRecord<'_, &[u8]>) -> String {
    use domain::rdata::AllRecordData;
    let owner = record.owner().to_name::<Vec<u8>>();
    let owner = owner.fmt_with_dot();
    let (ttl, rtype) = (record.ttl().as_secs(), record.rtype());
    let data = record.to_any_record::<AllRecordData<_, _>>().unwrap();
    format!("{owner} {ttl} {rtype} {}", data.data())
}

/// Bounds as the resolver has them by default.
pub fn bounds(dnssec_ok: bool) -> Bounds {
    Bounds { dnssec_ok, longest_ttl: 86_400, longest_negative_ttl: 10_800, failure_ttl: 5, zone: 1 }
}

/// When replies are read.
pub const NOW: Instant = Instant::from_secs(1_000);

impl Reply {
    pub fn key(&self) -> Key {
        Key::of(&wire(&self.name), Rtype::from_str(&self.rtype).unwrap().to_int(), 1, false)
    }

    pub fn read(&self, dnssec_ok: bool) -> Result<Answer, Rejection> {
        Answer::read(&self.key(), &self.octets(), NOW, &bounds(dnssec_ok))
    }
}

/// A part of what was believed, as text.
pub fn part(answer: &Answer, part: Part) -> Vec<String> {
    let name = |octets: &[u8]| Name::from_octets(octets.to_vec()).unwrap().fmt_with_dot().to_string();
    let shown = |record: Record| {
        let (owner, rtype) = (name(&record.owner), Rtype::from_int(record.rtype));
        let data = match (&record.data[..], rtype) {
            ([a, b, c, d], Rtype::A) => format!("{a}.{b}.{c}.{d}"),
            (data, Rtype::CNAME | Rtype::DNAME | Rtype::NS | Rtype::PTR) => name(data),
            (_, Rtype::RRSIG) => {
                format!("{} {}", Rtype::from_int(record.covered().unwrap()), name(record.signer().unwrap()))
            }
            _ => String::from("…"),
        };
        format!("{owner} {} {rtype} {data}", record.ttl)
    };
    answer.records(part).map(shown).collect()
}
