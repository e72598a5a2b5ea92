//! A tiny, slow, obvious model of a NAT (RFC 6146, RFC 4787, RFC 6888) runs next to the real one: the same packets, the same time, and after
//! every step the same answer, and the same bindings, sessions, subscribers and port blocks.
//!
//! The model keeps lists and searches them from end to end. Where the RFCs leave a choice (which outside port), it takes the real one's and
//! checks that it is lawful.
//!
//! ```text
//!   input:  family (of which 0x40 are softwires), filtering, how ports are given, an exempt subscriber (1) · limits (1) · rates (1) · seed (1) · steps
//!   step:   8 octets, which `step.rs` reads
//! ```

#[path = "nat_model/model.rs"]
mod model;
#[path = "nat_model/pair.rs"]
mod pair;
#[path = "nat_model/settings.rs"]
mod settings;
#[path = "nat_model/step.rs"]
mod step;
#[path = "nat_model/subscribers.rs"]
mod subscribers;

use pair::Pair;
use settings::{Family, Giving, Settings};
use sixway_dataplane::nat::{Filtering, SubscriberLimits};
use step::{OCTETS, Step};

/// The settings of a run.
fn settings([choice, limits, rates, seed]: [u8; 4]) -> Settings {
    let filtering = match choice / 2 % 4 {
        0 | 1 => Filtering::EndpointIndependent,
        2 => Filtering::AddressDependent,
        _ => Filtering::AddressAndPortDependent,
    };
    let is_softwire = choice & 0x40 != 0;
    let giving = match choice / 8 % 4 {
        0 | 1 => Giving::Single,
        // An AFTR gives no ports by addresses.
        3 if !is_softwire => Giving::Deterministic,
        _ => Giving::Blocks { most: 1 + u32::from(seed % 4), idle: [0, 120, 400][usize::from(seed / 4 % 3)] },
    };
    let several = matches!(giving, Giving::Blocks { .. }) && choice >= 128;
    let is_limited = limits >= 128;
    let of = |bit: u8, small: u32, large: u32| match (u8::from(is_limited) & limits >> bit, giving) {
        (0, _) => 0,
        (_, Giving::Single) => small,
        (_, Giving::Blocks { .. } | Giving::Deterministic) => large,
    };
    let [low, high] = if seed % 3 == 0 { [rates % 16, rates / 16].map(u32::from) } else { [0; 2] };
    let limits = SubscriberLimits {
        bindings: of(0, 4, 90),
        bindings_of: [of(1, 2, 40), of(2, 3, 70), of(3, 1, 20)],
        sessions: of(4, 6, 100),
        new_bindings_per_second: low.saturating_sub(8),
        new_sessions_per_second: high.saturating_sub(8),
    };
    let family = match choice % 2 {
        _ if is_softwire => Family::Softwire,
        0 => Family::Six,
        _ => Family::Four,
    };
    let workers = if several { 2 } else { 1 };
    let has_exempt = choice / 32 % 2 == 1;
    Settings { family, filtering, giving, limits, has_exempt, workers, seed: [seed.into(), 7] }
}

/// Runs both with what these octets say.
pub fn run(octets: &[u8]) {
    let Some((head, steps)) = octets.split_first_chunk::<4>() else { return };
    let settings = settings(*head);
    let mut pair = Pair::new(settings);
    let (steps, _) = steps.as_chunks::<OCTETS>();
    for step in steps {
        pair.step(&Step::of(*step, settings.in_blocks()));
    }
}
