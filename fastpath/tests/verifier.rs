//! The kernel takes the programs with everything that a configuration can hold: its verifier goes through all that they might do with these
//! constants, and gives up where that is too much.

use aya::programs::{ProgramInfo, SchedClassifier, Xdp};
use aya::{Ebpf, EbpfLoader};
use sixway_fastpath::layout::{
    ADDRESSES4, Config, HAIRPIN_INTRINSIC, HOST4, INSIDES, KIND_CONFIGURED, KIND_ISATAP, KIND_NAT44,
    KIND_NAT64, KIND_SIIT, KIND_SIX_RD, KIND_SIX_TO_FOUR, NETWORKS4, Network4, Own, POOLS, PORTS, PREFIXES6,
    Pool4, Port, Prefix6, RULES, Rule6, SOURCES, TRANSLATORS, TUNNELS, Translator, Tunnel,
};
use sixway_fastpath::rules::EAM_ROWS;
use sixway_fastpath::{TC_OBJECT, TC_PROGRAM, XDP_OBJECT, XDP_PROGRAM, can_decap_gso};
use std::error::Error;

/// Instructions that the verifier may go through: half of what it does, for those of older kernels need more.
const MOST: u32 = 500_000;

/// Roles of tunnels: host, router or customer edge, relay.
const ROLES: u8 = 3;

/// IPv6 prefix number so-and-so, of 48 bits, in network order.
fn prefix(number: usize) -> Prefix6 {
    let bits = 0x2001_0db8_0000_0000_u64 | (number as u64) << 16;
    Prefix6 { bits: [bits.to_be(), 0], mask: [(!0_u64 << 16).to_be(), 0] }
}

fn translator(kind: u8, number: usize) -> Translator {
    Translator {
        kind,
        length: [96, 64, 56, 48, 40, 32][number % 6],
        global_only: u8::from(number.is_multiple_of(2)),
        sets_tos: 1,
        sets_traffic_class: 1,
        eam: u8::from(kind == KIND_SIIT),
        lowest_mtu: 1_280,
        hairpinning: HAIRPIN_INTRINSIC,
        mss: 1_440,
        prefix: [number as u8 + 1; 16],
        ..Translator::zero()
    }
}

/// A tunnel whose lists are as long as can be.
fn tunnel(kind: u8, number: usize) -> Tunnel {
    Tunnel {
        kind,
        role: number as u8 % ROLES,
        sets_ttl: u8::from(number.is_multiple_of(2)),
        ttl: 64,
        ecn_normal: 1,
        mtu: 1_480,
        learns: 1,
        mss: 1_420,
        strict: 1,
        local: (number as u32 % 4 + 1).to_be(),
        remote: (number as u32 + 100).to_be(),
        site: (number as u32 + 1).to_be(),
        shared: 0x0a00_0000_u32.to_be(),
        shared_length: 8,
        prefix_length: 32,
        listed_only: u8::from(number % 2 == 1),
        domain: number as u8 + 1,
        prefix: [number as u8 + 1; 16],
        prefixes: [0, PREFIXES6 as u8],
        relays: [0, ADDRESSES4 as u8],
        locators: [0, NETWORKS4 as u8],
        refused: [0, NETWORKS4 as u8],
        ..Tunnel::zero()
    }
}

/// Every array is full; these are the kinds of translators and of tunnels, in turn.
fn full(translators: &[u8], tunnels: &[u8]) -> Config {
    let mut config = Config::zero();
    let turn = |kinds: &[u8], number: usize| kinds[number % kinds.len()];
    (config.tun, config.tun_mtu, config.mtu4, config.mtu6) = (7, 1_500, 1_500, 1_500);
    (config.plain_routing, config.can_decap_gso, config.has_stateless) = (1, 1, 1);
    config.translators =
        std::array::from_fn(|at| translator(turn(translators, at * translators.len() / TRANSLATORS), at));
    config.has_stateful = 1;
    config.siit_count = config.translators.iter().filter(|one| one.kind == KIND_SIIT).count() as u8;
    config.default_siit =
        config.translators.iter().position(|one| one.kind == KIND_SIIT).map_or(0, |at| at as u8 + 1);
    config.tunnels = std::array::from_fn(|at| tunnel(turn(tunnels, at), at));
    config.rules = std::array::from_fn(|at| {
        let Prefix6 { bits, mask } = prefix(at);
        let (kind, index) = match at % 2 {
            0 => (config.translators[at % TRANSLATORS].kind, at % TRANSLATORS),
            _ => (config.tunnels[at % TUNNELS].kind, at % TUNNELS),
        };
        Rule6 { bits, mask, length: 48, kind, index: index as u8, ..Rule6::zero() }
    });
    config.ports = std::array::from_fn(|at| Port {
        ifindex: at as u32 + 10,
        below: at as u32 / 2 + 10,
        vlan: at as u16 % 2,
        mac: [2, 0, 0, 0, 0, at as u8],
        strict: at as u8 % 2,
        tc: at as u8 / 2 % 2,
        ..Port::zero()
    });
    config.pools =
        std::array::from_fn(|at| Pool4 { address: (at as u32) << 8, mask: !0xff, shared: at as u32 % 2 });
    config.own =
        std::array::from_fn(|at| Own { address: at as u32 + 1, public_: 1, is_host4: 1, ..Own::zero() });
    config.prefixes = std::array::from_fn(prefix);
    config.networks = std::array::from_fn(|at| Network4 { bits: (at as u32 + 1).to_be(), mask: !0 });
    config.addresses = std::array::from_fn(|at| (at as u32 + 1).to_be());
    config.host6 = std::array::from_fn(|at| [at as u8 + 1; 16]);
    config.sources4 = std::array::from_fn(|at| Network4 { bits: (at as u32 + 1).to_be(), mask: !0 });
    config.sources6 = std::array::from_fn(prefix);
    config.inside4 = std::array::from_fn(|at| Network4 { bits: (at as u32 + 1).to_be(), mask: !0 });
    config.inside4_count = INSIDES as u32;
    let nat44 = config.translators.iter().position(|one| one.kind == KIND_NAT44);
    config.nat44 = nat44.map_or(0, |at| at as u8 + 1);
    (config.sources4_count, config.sources6_count) = (SOURCES as u8, SOURCES as u8);
    (config.translators_count, config.tunnels_count) = (TRANSLATORS as u8, TUNNELS as u8);
    (config.rules_count, config.ports_count, config.pools_count) = (RULES as u8, PORTS as u8, POOLS as u8);
    (config.own_count, config.host6_count) = (HOST4 as u8, HOST4 as u8);
    config
}

/// What the verifier says of both programs: how many instructions it went through.
fn verify(config: &Config) -> Result<[Option<u32>; 2], Box<dyn Error>> {
    let open = |octets| -> Result<Ebpf, Box<dyn Error>> {
        let mut loader = EbpfLoader::new();
        loader.override_global("config", config.octets(), true).map_max_entries("flows", 64);
        for map in ["eam4", "eam6"] {
            loader.map_max_entries(map, EAM_ROWS as u32);
        }
        Ok(loader.load(octets)?)
    };
    let went = |info: ProgramInfo| info.verified_instruction_count();
    let (mut tc, mut xdp) = (open(TC_OBJECT)?, open(XDP_OBJECT)?);
    let at_tc: &mut SchedClassifier = tc.program_mut(TC_PROGRAM).unwrap().try_into()?;
    at_tc.load()?;
    let in_driver: &mut Xdp = xdp.program_mut(XDP_PROGRAM).unwrap().try_into()?;
    in_driver.load()?;
    Ok([went(at_tc.info()?), went(in_driver.info()?)])
}

/// Where the kernel does not let this process load programs, the test is ignored.
fn needs_root() {
    // SAFETY: no arguments.
    if unsafe { libc::geteuid() } != 0 {
        sixway_trial::ignore("needs root");
    }
}

#[test]
fn programs_with_everything_that_a_configuration_can_hold_are_taken() {
    needs_root();
    let every = [KIND_CONFIGURED, KIND_SIX_TO_FOUR, KIND_SIX_RD, KIND_ISATAP];
    let mut cases = vec![
        ("nat64 alone", full(&[KIND_NAT64], &every)),
        ("nat44", full(&[KIND_NAT44, KIND_NAT64, KIND_SIIT], &every)),
        ("siit alone", full(&[KIND_SIIT], &every)),
        ("both", full(&[KIND_NAT64, KIND_SIIT], &every)),
    ];
    let kinds = ["configured", "6to4", "6rd", "isatap"];
    cases.extend(
        kinds
            .into_iter()
            .zip(every)
            .map(|(name, kind)| (name, full(&[KIND_NAT64, KIND_NAT44, KIND_SIIT], &[kind]))),
    );
    for (name, config) in cases {
        match verify(&config) {
            // Not every kernel says (Linux 5.16).
            Ok(went) => {
                assert!(went.iter().flatten().all(|one| *one <= MOST), "{name}: {went:?} instructions")
            }
            Err(error) => panic!("{name}: {error:?}"),
        }
    }
}

#[test]
fn linux_6_3_and_later_can_decapsulate_gso_packets() {
    needs_root();
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split(['.', '-']).map_while(|number| number.parse::<u32>().ok());
    let version = (numbers.next().unwrap(), numbers.next().unwrap());
    assert_eq!(can_decap_gso(), version >= (6, 3), "{release}");
}
