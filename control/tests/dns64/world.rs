//! Clients, a resolver, and upstreams that know a few names.

use domain::base::iana::Class;
use domain::base::{Message, Rtype};
use domain::rdata::AllRecordData;
use sixway_control::Instant;
use sixway_control::dns64::{
    Access, Asker, Counters, Dnssec, Exchange, Failure, Heard, Limits, NameMappings, Outcome, QueryTransport,
    Resolver, Reverse, Settings, SpecialNames, Stale, SynthesisedTtl, Transmit, Transport, Upstream, Wire,
};
use sixway_dataplane::translate::address::Rfc6052;
use sixway_dnssec::{Validate, Validator};
use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// RD, CD and AD of a query's header.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bits {
    pub dnssec_ok: bool,
    pub checking_disabled: bool,
    pub authentic_data: bool,
}

pub const PLAIN: Bits = Bits { dnssec_ok: false, checking_disabled: false, authentic_data: false };
pub const DO: Bits = Bits { dnssec_ok: true, checking_disabled: false, authentic_data: false };
pub const AD: Bits = Bits { dnssec_ok: false, checking_disabled: false, authentic_data: true };
pub const CD: Bits = Bits { dnssec_ok: false, checking_disabled: true, authentic_data: false };
pub const CD_DO: Bits = Bits { dnssec_ok: true, checking_disabled: true, authentic_data: false };

/// What a client got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Got {
    pub rcode: String,
    pub authoritative: bool,
    pub authentic: bool,
    pub truncated: bool,
    pub answer: Vec<String>,
    pub authority: Vec<String>,
    /// Without the OPT record.
    pub additional: Vec<String>,
    pub extended_error: Option<(u16, String)>,
    pub octets: usize,
    pub after: Duration,
}

/// How an upstream behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    Honest,
    Silent,
    /// To questions of this type only.
    SilentTo(u16),
    ServfailTo(u16),
    Servfail,
    Unreachable,
    /// There is no room here to ask it.
    NoRoom,
    Authentic,
    /// As [`Self::Authentic`], but SERVFAIL to questions of this type.
    AuthenticButFor(u16),
    /// FORMERR to what has an OPT record.
    WithoutEdns,
    /// TC to what comes by datagram.
    Truncating,
    /// An octet is wrong, each time another.
    Garbling,
    /// This, extended if it is large, to everything.
    Rcode(u16),
}

pub struct World<V = Validator> {
    pub now: Instant,
    pub resolver: Resolver<u32, V>,
    pub manners: Vec<Manner>,
    pub latency: Duration,
    /// Questions of this type take so much longer.
    pub slow: Option<(u16, Duration)>,
    /// Questions for names below this one have no reply.
    pub dead: Option<&'static str>,
    /// The number of links of a chain that are followed.
    pub links: usize,
    /// Owner (lower case, with its final dot) → type, TTL, data.
    records: BTreeMap<String, Vec<(Rtype, u32, String)>>,
    /// Replies as they were recorded, by name and type; to other questions there is none then.
    recorded: BTreeMap<(String, u16), Vec<u8>>,
    /// Positive answers name the zone's servers.
    pub nameservers: bool,
    /// TTL and MINIMUM of every negative answer's SOA; `None`: it does not exist.
    pub soa: Option<(u32, u32)>,
    on_their_way: VecDeque<(Instant, Exchange, Result<Vec<u8>, Failure>)>,
    /// Questions that upstreams saw: upstream, name in lower case, type.
    pub seen: Vec<(usize, String, Rtype)>,
    /// The same as they were sent.
    pub messages: Vec<Vec<u8>>,
    tickets: u32,
    answered: BTreeMap<u32, (Vec<u8>, Outcome)>,
}

pub fn settings() -> Settings {
    let prefix =
        Rfc6052::new("64:ff9b::/96".parse().expect("it is well-formed"), true).expect("it is well-formed");
    Settings {
        upstreams: vec![Upstream { names: vec![], datagrams: true }],
        upstream_labels: vec!["192.0.2.53".into()],
        prefixes: vec![prefix],
        rules: vec![],
        access: Access { v6: vec!["2001:db8::/32".parse().expect("it is well-formed")], ..Access::default() },
        exclude: vec!["::ffff:0:0/96".parse().expect("it is well-formed")],
        exclude4: Vec::new(),
        exclude_private: false,
        synthesise_reserved: false,
        synthesised_ttl: SynthesisedTtl::Negative,
        reverse: Reverse::Cname { ttl: 600 },
        local_ipv4only: true,
        special_names: SpecialNames::Upstream,
        hosts: Arc::default(),
        designated: Vec::new(),
        cookie_secrets: Vec::new(),
        stream_idle: None,
        parallel: false,
        dnssec: Dnssec::default(),
        stale: Some(Stale {
            longest: Duration::from_secs(86_400),
            patience: Duration::from_millis(1_800),
            ttl: 30,
        }),
        prefetch: true,
        minimal_any: true,
        limits: Limits {
            cache: 1 << 20,
            waiting: 100,
            per_client: None,
            udp_payload: 1_232,
            longest_ttl: 86_400,
            longest_negative_ttl: 10_800,
            upstream_questions: 4_096,
            client_prefix_length: 64,
            deadline: Duration::from_millis(4_800),
        },
    }
}

pub fn wire(name: &str) -> Wire {
    let mut octets = Vec::new();
    for label in name.split('.').filter(|label| !label.is_empty()) {
        octets.push(label.len() as u8);
        octets.extend(label.to_ascii_lowercase().bytes());
    }
    octets.push(0);
    Wire(octets.into())
}

fn name_at(message: &[u8], mut at: usize) -> (String, usize) {
    let mut text = String::new();
    while message[at] != 0 {
        let length = usize::from(message[at]);
        text.extend(message[at + 1..at + 1 + length].iter().map(|octet| char::from(*octet)));
        text.push('.');
        at += 1 + length;
    }
    (if text.is_empty() { ".".into() } else { text }, at + 1)
}

impl World {
    pub fn new(settings: Settings) -> Self {
        Self::with_validator(settings, Validator::default())
    }

    pub fn client() -> Ipv6Addr {
        "2001:db8:1::2".parse().expect("it is well-formed")
    }
}

impl<V: Validate> World<V> {
    pub fn with_validator(settings: Settings, validator: V) -> Self {
        let now = Instant::from_secs(1_000);
        let manners = vec![Manner::Honest; settings.upstreams.len()];
        let mut resolver = Resolver::with_validator(settings, validator, [7; 32], now);
        resolver.set_wall_clock(now, 1_800_000_000);
        Self {
            now,
            resolver,
            manners,
            latency: Duration::from_millis(10),
            slow: None,
            dead: None,
            links: 20,
            records: BTreeMap::new(),
            recorded: BTreeMap::new(),
            nameservers: false,
            soa: Some((900, 300)),
            on_their_way: VecDeque::new(),
            seen: Vec::new(),
            messages: Vec::new(),
            tickets: 0,
            answered: BTreeMap::new(),
        }
    }

    /// With a NAT46.
    pub fn with_mappings(mut self, names: NameMappings) -> Self {
        self.resolver = self.resolver.with_mappings(Some(names));
        self
    }

    /// With these records: owner, type, TTL, data, as in a zone file.
    pub fn with(mut self, zone: &[(&str, &str, u32, &str)]) -> Self {
        self.add(zone);
        self
    }

    pub fn add(&mut self, zone: &[(&str, &str, u32, &str)]) {
        for (owner, rtype, ttl, data) in zone {
            let owner = format!("{}.", owner.to_ascii_lowercase());
            let record = (Rtype::from_str(rtype).expect("it is well-formed"), *ttl, (*data).to_owned());
            self.records.entry(owner).or_default().push(record);
        }
    }

    /// With upstreams that say what was recorded: a name, a type, a remark and the message in hexadecimal digits in each line.
    pub fn with_recorded(mut self, text: &str) -> Self {
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let [name, rtype, _, message] = line.split(' ').collect::<Vec<_>>()[..] else { continue };
            let octets = message.as_bytes().chunks(2).map(|pair| {
                let digits = std::str::from_utf8(pair).expect("digits");
                u8::from_str_radix(digits, 16).expect("two hexadecimal digits")
            });
            let key = (name.to_ascii_lowercase() + ".", rtype.parse().expect("a type"));
            self.recorded.insert(key, octets.collect());
        }
        self
    }

    /// With this TTL for all records of what was recorded.
    pub fn with_ttl(mut self, name: &str, rtype: u16, ttl: u32) -> Self {
        let recorded = self.recorded.get_mut(&(format!("{name}."), rtype)).expect("it was recorded");
        let records: u16 =
            (6..12).step_by(2).map(|at| u16::from_be_bytes([recorded[at], recorded[at + 1]])).sum();
        let behind_name = |message: &[u8], mut at: usize| loop {
            match message[at] {
                0 => break at + 1,
                0xc0.. => break at + 2,
                length => at += 1 + usize::from(length),
            }
        };
        let mut at = behind_name(recorded, 12) + 4;
        for _ in 0..records {
            at = behind_name(recorded, at);
            if recorded[at + 1] != 41 {
                recorded[at + 4..at + 8].copy_from_slice(&ttl.to_be_bytes());
            }
            at += 10 + usize::from(u16::from_be_bytes([recorded[at + 8], recorded[at + 9]]));
        }
        self
    }

    /// Asks by UDP and waits for the answer.
    pub fn ask(&mut self, name: &str, rtype: &str, bits: Bits) -> Got {
        let started = self.now;
        let ticket = self.send(name, rtype, bits);
        for _ in 0..10_000 {
            if let Some((message, _)) = self.answered.remove(&ticket) {
                return decode(&message, self.now - started);
            }
            self.step();
        }
        panic!("{name} {rtype} was never answered");
    }

    /// Asks; the answer comes later.
    pub fn send(&mut self, name: &str, rtype: &str, bits: Bits) -> u32 {
        self.send_from(World::client(), Transport::Udp, &query(name, rtype, bits))
    }

    pub fn send_from(&mut self, address: Ipv6Addr, transport: Transport, query: &[u8]) -> u32 {
        self.tickets += 1;
        let ticket = self.tickets;
        let asker = Asker { address: address.into(), transport, ticket };
        let mut answer = Vec::new();
        if let Heard::Answered(outcome) = self.resolver.handle_query(self.now, &asker, query, &mut answer) {
            self.answered.insert(ticket, (answer, outcome));
        }
        self.poll();
        ticket
    }

    /// The answer to what was sent, if it has come.
    pub fn answer(&mut self, ticket: u32) -> Option<Got> {
        self.answered.remove(&ticket).map(|(message, _)| decode(&message, Duration::ZERO))
    }

    pub fn counters(&self) -> Counters {
        self.resolver.counters()
    }

    /// All answers that have come: ticket, message, outcome.
    pub fn take_answers(&mut self) -> Vec<(u32, Vec<u8>, Outcome)> {
        let answered = std::mem::take(&mut self.answered);
        answered.into_iter().map(|(ticket, (message, outcome))| (ticket, message, outcome)).collect()
    }

    /// Other settings, and how each upstream behaves; which place each had before. Says how many answers were forgotten.
    pub fn reconfigure(&mut self, settings: Settings, upstreams: &[(Manner, Option<usize>)]) -> usize {
        assert_eq!(settings.upstreams.len(), upstreams.len());
        self.manners = upstreams.iter().map(|(manner, _)| *manner).collect();
        let kept: Vec<Option<usize>> = upstreams.iter().map(|(_, before)| *before).collect();
        let forgotten = self.resolver.reconfigure(self.now, settings, &kept);
        self.poll();
        forgotten
    }

    /// Time passes in which nothing happens.
    pub fn jump(&mut self, time: Duration) {
        self.now = self.now + time;
        self.poll();
    }

    /// Goes on to what happens next.
    pub fn step(&mut self) {
        let reply = self.on_their_way.iter().map(|(at, ..)| *at).min();
        let next = reply.into_iter().chain(self.resolver.poll_timeout()).min();
        self.now = self.now.max(next.expect("something is to happen"));
        if let Some(place) = self.on_their_way.iter().position(|(at, ..)| *at <= self.now) {
            let (_, exchange, reply) = self.on_their_way.remove(place).expect("it is there");
            self.resolver.handle_reply(self.now, exchange, reply.as_deref().map_err(|failure| *failure));
        }
        self.poll();
    }

    /// Lets time pass.
    pub fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        for _ in 0..10_000 {
            let reply = self.on_their_way.iter().map(|(at, ..)| *at).min();
            let next = reply.into_iter().chain(self.resolver.poll_timeout()).min();
            if next.is_none_or(|next| next > until) {
                break;
            }
            self.step();
        }
        self.now = until;
        self.poll();
    }

    fn poll(&mut self) {
        while let Some(transmit) = self.resolver.poll_transmit(self.now) {
            self.receive(&transmit);
        }
        while let Some(exchange) = self.resolver.poll_cancel() {
            self.on_their_way.retain(|(_, other, _)| *other != exchange);
        }
        let mut answer = Vec::new();
        while let Some((asker, outcome)) = self.resolver.poll_answer(self.now, &mut answer) {
            let before = self.answered.insert(asker.ticket, (answer.clone(), outcome));
            assert!(before.is_none(), "two answers");
        }
    }

    fn receive(&mut self, transmit: &Transmit) {
        let (name, behind) = name_at(&transmit.message, 12);
        let rtype =
            Rtype::from_int(u16::from_be_bytes([transmit.message[behind], transmit.message[behind + 1]]));
        self.seen.push((transmit.upstream, name.to_ascii_lowercase(), rtype));
        self.messages.push(transmit.message.to_vec());
        if self.dead.is_some_and(|dead| name.to_ascii_lowercase().ends_with(dead)) {
            return;
        }
        let manner = self.manners[transmit.upstream];
        let reply = match manner {
            Manner::Silent => return,
            Manner::SilentTo(silent) if silent == rtype.to_int() => return,
            Manner::Unreachable => Err(Failure::Unreachable),
            Manner::NoRoom => Err(Failure::NoRoom),
            Manner::Servfail => Ok(self.reply(&transmit.message, &name, rtype, behind, Some(2))),
            Manner::ServfailTo(failing) if failing == rtype.to_int() => {
                Ok(self.reply(&transmit.message, &name, rtype, behind, Some(2)))
            }
            Manner::AuthenticButFor(failing) if failing == rtype.to_int() => {
                Ok(self.reply(&transmit.message, &name, rtype, behind, Some(2)))
            }
            Manner::WithoutEdns if transmit.message[11] != 0 => {
                Ok(self.reply(&transmit.message, &name, rtype, behind, Some(1)))
            }
            Manner::Rcode(rcode) => {
                let mut reply = self.reply(&transmit.message, &name, rtype, behind, Some(rcode as u8 & 15));
                reply[11] = 1;
                reply.extend([0, 0, 41, 4, 0, (rcode >> 4) as u8, 0, 0, 0, 0, 0]);
                Ok(reply)
            }
            Manner::Honest
            | Manner::SilentTo(_)
            | Manner::ServfailTo(_)
            | Manner::Authentic
            | Manner::AuthenticButFor(_)
            | Manner::Truncating
            | Manner::Garbling
            | Manner::WithoutEdns => Ok(self.reply(&transmit.message, &name, rtype, behind, None)),
        };
        let reply = reply.map(|mut reply| {
            let authentic = matches!(manner, Manner::Authentic | Manner::AuthenticButFor(_));
            reply[3] |= if authentic { 0x20 } else { 0 };
            reply[2] |=
                if manner == Manner::Truncating && transmit.way == QueryTransport::Datagram { 2 } else { 0 };
            let wrong = self.seen.len() * 7 % reply.len();
            reply[wrong] ^= if manner == Manner::Garbling { 0xff } else { 0 };
            reply
        });
        let slow =
            self.slow.filter(|(slow, _)| *slow == rtype.to_int()).map_or(Duration::ZERO, |slow| slow.1);
        self.on_their_way.push_back((self.now + self.latency + slow, transmit.exchange, reply));
    }

    /// As a recursive server would: CNAME records are followed.
    fn reply(&self, query: &[u8], name: &str, rtype: Rtype, behind: usize, rcode: Option<u8>) -> Vec<u8> {
        let recorded = self.recorded.get(&(name.to_ascii_lowercase(), rtype.to_int()));
        if let Some(recorded) = recorded.filter(|_| rcode.is_none()) {
            let mut message = recorded.clone();
            message[..2].copy_from_slice(&query[..2]);
            message[12..behind + 4].copy_from_slice(&query[12..behind + 4]);
            return message;
        }
        let rcode = if self.recorded.is_empty() { rcode } else { Some(2) };
        let mut message = query[..behind + 4].to_vec();
        message[2] |= 0x80;
        message[3] = 0x80 | rcode.unwrap_or(0);
        message[6..12].fill(0);
        if rcode.is_some() {
            return message;
        }
        let mut owner = name.to_ascii_lowercase();
        let (mut answers, mut exists) = (0, true);
        for link in 0.. {
            if link > self.links {
                message[6..8].copy_from_slice(&u16::to_be_bytes(answers));
                return message;
            }
            let Some(records) = self.records.get(&owner) else {
                exists = self.records.keys().any(|other| other.ends_with(&format!(".{owner}")));
                break;
            };
            let data: Vec<_> = records.iter().filter(|record| record.0 == rtype).collect();
            let alias = records.iter().find(|record| record.0 == Rtype::CNAME && rtype != Rtype::CNAME);
            for (rtype, ttl, data) in &data {
                append(&mut message, &owner, *rtype, *ttl, data);
                answers += 1;
            }
            let Some((_, ttl, target)) = alias.filter(|_| data.is_empty()) else { break };
            append(&mut message, &owner, Rtype::CNAME, *ttl, target);
            answers += 1;
            owner = format!("{target}.").to_ascii_lowercase();
        }
        let found =
            self.records.get(&owner).is_some_and(|records| records.iter().any(|record| record.0 == rtype));
        message[6..8].copy_from_slice(&u16::to_be_bytes(answers));
        message[3] |= if exists { 0 } else { 3 };
        if let (false, Some((ttl, minimum))) = (found, self.soa) {
            let zone = owner.trim_end_matches('.').rsplit('.').next().unwrap_or_default().to_owned() + ".";
            append(&mut message, &zone, Rtype::SOA, ttl, &minimum.to_string());
            message[9] = 1;
        }
        if found && self.nameservers {
            append(&mut message, "test.", Rtype::NS, 3_600, "ns.test");
            message[9] = 1;
        }
        message
    }
}

pub fn append(message: &mut Vec<u8>, owner: &str, rtype: Rtype, ttl: u32, data: &str) {
    message.extend_from_slice(&wire(owner).0);
    message.extend_from_slice(&rtype.to_int().to_be_bytes());
    message.extend_from_slice(&Class::IN.to_int().to_be_bytes());
    message.extend_from_slice(&ttl.to_be_bytes());
    let data = match rtype {
        Rtype::A => data.parse::<Ipv4Addr>().expect("it is well-formed").octets().to_vec(),
        Rtype::AAAA => data.parse::<Ipv6Addr>().expect("it is well-formed").octets().to_vec(),
        Rtype::CNAME | Rtype::DNAME | Rtype::PTR | Rtype::NS => wire(data).0.to_vec(),
        Rtype::TXT => [&[data.len() as u8], data.as_bytes()].concat(),
        Rtype::SOA => {
            let minimum = data.parse::<u32>().expect("it is well-formed");
            let mut soa = [wire("ns.test").0, wire("admin.test").0].concat();
            [1, 2, 3, 4, minimum].iter().for_each(|field| soa.extend(u32::to_be_bytes(*field)));
            soa
        }
        other => panic!("{other} is not made here"),
    };
    message.extend_from_slice(&(data.len() as u16).to_be_bytes());
    message.extend_from_slice(&data);
}

/// A query with EDNS, unless there are no bits at all.
pub fn query(name: &str, rtype: &str, bits: Bits) -> Vec<u8> {
    let mut message = vec![0xab, 0xcd, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1];
    message[3] = u8::from(bits.checking_disabled) << 4 | u8::from(bits.authentic_data) << 5;
    for label in name.split('.').filter(|label| !label.is_empty()) {
        message.push(label.len() as u8);
        message.extend(label.bytes());
    }
    message.push(0);
    message.extend(Rtype::from_str(rtype).expect("it is well-formed").to_int().to_be_bytes());
    message.extend([0, 1]);
    message.extend([0, 0, 41, 0x04, 0xd0, 0, 0, u8::from(bits.dnssec_ok) << 7, 0, 0, 0]);
    message
}

pub fn query_without_edns(name: &str, rtype: &str) -> Vec<u8> {
    let mut message = query(name, rtype, PLAIN);
    message.truncate(message.len() - 11);
    message[11] = 0;
    message
}

pub fn decode(octets: &[u8], after: Duration) -> Got {
    let message = Message::from_octets(octets).expect("a message");
    let section = |section: domain::base::message::RecordSection<'_, _>| -> Vec<String> {
        let records = section.limit_to_in::<AllRecordData<_, _>>();
        records
            .map(|record| record.expect("a record that can be read"))
            .filter(|record| record.rtype() != Rtype::OPT)
            .map(|record| record.to_string())
            .collect()
    };
    assert_eq!(message.header().id(), 0xabcd);
    assert!(message.header().qr() && message.header().ra());
    let extended_error = message.opt().and_then(|opt| {
        opt.opt().iter::<domain::base::opt::ExtendedError<_>>().next().map(|error| {
            let error = error.expect("an option that can be read");
            let text = error.text().and_then(|text| text.as_ref().ok().map(ToString::to_string));
            (error.code().to_int(), text.unwrap_or_default())
        })
    });
    Got {
        rcode: message.header().rcode().to_string(),
        authoritative: message.header().aa(),
        authentic: message.header().ad(),
        truncated: message.header().tc(),
        answer: section(message.answer().expect("an answer section")),
        authority: section(message.authority().expect("an authority section")),
        additional: section(message.additional().expect("an additional section")),
        extended_error,
        octets: octets.len(),
        after,
    }
}
