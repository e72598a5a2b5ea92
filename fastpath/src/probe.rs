//! Features of this kernel, found out by using them once.

use crate::settings::Rules;
use crate::test_run::{Frame, run_tc};
use aya::EbpfLoader;
use aya::programs::SchedClassifier;
use std::sync::OnceLock;

static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/probe.bpf.o"));

/// Whether GSO packets can be decapsulated: the kernel knows BPF_F_ADJ_ROOM_DECAP_L3_IPV6 (Linux 6.3).
pub fn can_decap_gso() -> bool {
    static KNOWN: OnceLock<bool> = OnceLock::new();
    *KNOWN.get_or_init(|| decapsulate().unwrap_or(false))
}

/// The rules with this kernel's abilities filled in.
pub(crate) fn complete(rules: &Rules) -> Rules {
    let mut rules = rules.clone();
    rules.config.can_decap_gso = u8::from(can_decap_gso());
    rules
}

fn decapsulate() -> Option<bool> {
    let mut object = EbpfLoader::new().load(OBJECT).ok()?;
    let program: &mut SchedClassifier = object.program_mut("sixway_probe")?.try_into().ok()?;
    crate::patience::patiently(|| program.load()).ok()?;
    let mut octets = vec![0; 14 + 20 + 40 + 20];
    octets[12] = 0x08;
    octets[14] = 0x45;
    octets[14 + 9] = 41;
    octets[14 + 20] = 0x60;
    let ran = run_tc(program, &Frame::new(&octets)).ok()?;
    Some(ran.verdict == 0)
}
