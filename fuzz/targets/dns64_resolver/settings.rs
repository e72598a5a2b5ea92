//! Settings, chosen by the bits of a number.

use super::{Anchor, AnchorKey, Dnssec, Wire};
use sixway_control::dns64::{
    Access, CheckingDisabled, DnssecOk, Limits, Reverse, Rule, Settings, SpecialNames, Stale, Synthesis,
    SynthesisedTtl, Upstream, ValidatingClients,
};
use sixway_dataplane::translate::address::rfc6052::Rfc6052;
use std::sync::Arc;
use std::time::Duration;

pub const UDP_PAYLOAD: u16 = 1_232;

pub fn chosen(choice: u16) -> Settings {
    let has = |bit: u16| choice >> bit & 1 == 1;
    let prefix = Rfc6052::new("2001:db8:64::/96".parse().unwrap(), true).unwrap();
    let name = |octets: &[u8]| Wire(octets.into());
    let rule = |label: &[u8], synthesis| Rule {
        names: vec![name(label)],
        synthesis,
        hide_a: synthesis == Synthesis::Always,
        ..Rule::default()
    };
    Settings {
        upstreams: vec![
            Upstream { names: vec![], datagrams: true },
            Upstream { names: if has(0) { vec![name(b"\x03lan\0")] } else { vec![] }, datagrams: has(0) },
        ],
        upstream_labels: vec!["192.0.2.53".into()],
        prefixes: vec![prefix],
        rules: vec![
            rule(b"\x05never\x04test\0", Synthesis::Never),
            rule(b"\x06always\x04test\0", Synthesis::Always),
            Rule {
                addresses: vec!["10.0.0.0/8".parse().unwrap()],
                synthesis: Synthesis::Never,
                ..Rule::default()
            },
        ],
        access: Access {
            v4: vec!["192.0.2.0/24".parse().unwrap()],
            v6: vec!["2001:db8::/32".parse().unwrap()],
            ..Access::default()
        },
        exclude: vec!["::ffff:0:0/96".parse().unwrap()],
        exclude4: vec![("2001:db8:64::/96".parse().unwrap(), vec!["192.168.0.0/16".parse().unwrap()])],
        exclude_private: false,
        synthesise_reserved: false,
        reverse: reverse(choice >> 1 & 3),
        synthesised_ttl: SynthesisedTtl::Negative,
        local_ipv4only: true,
        special_names: if has(15) { SpecialNames::Local } else { SpecialNames::Upstream },
        hosts: Arc::default(),
        designated: Vec::new(),
        cookie_secrets: Vec::new(),
        stream_idle: None,
        parallel: has(3),
        dnssec: dnssec(choice >> 4),
        stale: has(9).then_some(Stale {
            longest: Duration::from_secs(86_400),
            patience: Duration::from_millis(1_800),
            ttl: 30,
        }),
        prefetch: has(10),
        minimal_any: has(11),
        limits: limits(choice >> 12),
    }
}

fn reverse(choice: u16) -> Reverse {
    match choice {
        0 => Reverse::Cname { ttl: 600 },
        1 => Reverse::Rewrite,
        2 => Reverse::Name { name: Wire(b"\x05nat64\x04test\0"[..].into()), ttl: 600 },
        _ => Reverse::Off,
    }
}

fn dnssec(choice: u16) -> Dnssec {
    let has = |bit: u16| choice >> bit & 1 == 1;
    let key = AnchorKey::Ds(include_bytes!("../validation.anchor")[..].into());
    Dnssec {
        validate: has(0),
        anchors: vec![Anchor { zone: Wire(b"\x04test\0"[..].into()), key }],
        trust_upstream: has(1),
        insecure: vec![Wire(b"\x03lan\0"[..].into())],
        checking_disabled: if has(2) { CheckingDisabled::PassOn } else { CheckingDisabled::Synthesise },
        dnssec_ok: if has(3) { DnssecOk::PassOn } else { DnssecOk::Synthesise },
        validating_clients: if has(11) { ValidatingClients::Unsigned } else { ValidatingClients::Untouched },
        ad_without_do: false,
    }
}

fn limits(choice: u16) -> Limits {
    let has = |bit: u16| choice >> bit & 1 == 1;
    Limits {
        cache: if has(0) { 2_000 } else { 1 << 20 },
        waiting: if has(1) { 2 } else { 1_000 },
        per_client: has(2).then_some((2, 5)),
        udp_payload: UDP_PAYLOAD,
        longest_ttl: 86_400,
        longest_negative_ttl: 10_800,
        upstream_questions: 4_096,
        client_prefix_length: 64,
        deadline: Duration::from_millis(4_800),
    }
}
