//! The place of an entry: the hash of `bpf/flow.h`, with a secret of the table.

use crate::layout::{BUCKET, Flow, TO_OUTSIDE};

/// The secret.
pub(crate) type Keys = [u64; 4];

/// Two words and their keys (RFC 4418 section 5.2.2: NH).
const fn pair(keys: u64, one: u32, other: u32) -> u64 {
    one.wrapping_add(keys as u32) as u64 * other.wrapping_add((keys >> 32) as u32) as u64
}

/// Makes every bit depend on all of the sum.
const fn stir(sum: u64) -> u64 {
    let sum = (sum ^ sum >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    sum ^ sum >> 32
}

/// The hash of the packets that a half carries.
pub(crate) fn hash(keys: &Keys, flow: &Flow) -> u64 {
    let tail = u32::from(flow.protocol) << 8 | u32::from(flow.direction);
    let ports = |port: u16| u32::from(port) << 16 | u32::from(flow.remote_port);
    if flow.direction == TO_OUTSIDE {
        let (quads, _) = flow.inside.as_chunks::<4>();
        let word = |number: usize| u32::from_ne_bytes(quads[number]);
        let address = pair(keys[0], word(0), word(1)).wrapping_add(pair(keys[1], word(2), word(3)));
        let remote = pair(keys[2], flow.remote, ports(flow.inside_port));
        let tail = pair(keys[3], u32::from(flow.mechanism) << 16 | tail, 0);
        return stir(address.wrapping_add(remote).wrapping_add(tail));
    }
    let addresses = pair(keys[0], flow.outside, flow.remote);
    stir(addresses.wrapping_add(pair(keys[1], ports(flow.outside_port), tail)))
}

/// An address as this machine reads its two halves.
pub(crate) fn words(address: &[u8; 16]) -> [u64; 2] {
    let (halves, _) = address.as_chunks::<8>();
    [u64::from_ne_bytes(halves[0]), u64::from_ne_bytes(halves[1])]
}

/// The slots where a hash may lie, in the order in which they are looked through: two buckets, from the same place in each.
pub(crate) fn slots(hash: u64, buckets: u32) -> impl Iterator<Item = usize> {
    let place = |part: u64| ((part * u64::from(buckets)) >> 32) as usize * BUCKET;
    [place(hash >> 32), place(hash & 0xffff_ffff)]
        .into_iter()
        .flat_map(move |bucket| (0..BUCKET).map(move |step| bucket + (hash as usize + step) % BUCKET))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::TO_INSIDE;
    use std::fmt::Write;
    use std::process::Command;

    const KEYS: Keys =
        [0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210, 0xa5a5_5a5a_0f0f_f0f0, 0xdead_beef_0bad_f00d];

    /// Prints what `bpf/flow.h` makes of flows that are given as their octets.
    const PROGRAM: &str = r#"
        #define HOOK_TC 1
        #include "flow.h"
        int printf(const char *, ...);
        static void print(const struct control *control, const struct flow *flow)
        {
            __u32 tail = flow->protocol << 8 | flow->direction;
            __u64 hash;
            if (flow->direction == TO_OUTSIDE)
                hash = hash_to_outside(control, flow->inside, flow->remote,
                                       (__u32)flow->inside_port << 16 | flow->remote_port, (__u32)flow->mechanism << 16 | tail);
            else
                hash = hash_to_inside(control, flow->outside, flow->remote,
                                      (__u32)flow->outside_port << 16 | flow->remote_port, tail);
            printf("%llx %u %u\n", (unsigned long long)hash, (__u32)((hash >> 32) * control->buckets >> 32),
                   (__u32)((hash & 0xffffffff) * control->buckets >> 32));
        }
        int main(void)
        {
            struct control control = { .buckets = 1000003, .keys = { KEYS } };
            struct flow flow;
            FLOWS
            return 0;
        }
    "#;

    fn flows() -> Vec<Flow> {
        let flow = |number: u32| Flow {
            inside: std::array::from_fn(|at| {
                (number.wrapping_mul(0x9e37_79b1) >> (at % 25)) as u8 ^ at as u8
            }),
            outside: number.wrapping_mul(0x85eb_ca6b),
            remote: number.wrapping_mul(0xc2b2_ae35),
            outside_port: number as u16,
            remote_port: !number as u16,
            inside_port: (number * 7) as u16,
            protocol: if number.is_multiple_of(3) { 17 } else { 6 },
            direction: if number.is_multiple_of(2) { TO_OUTSIDE } else { TO_INSIDE },
            mechanism: (number % 8) as u8,
            ..Flow::zero()
        };
        (0..100).map(flow).collect()
    }

    #[test]
    fn the_hash_is_that_of_the_programs() {
        let (mut c, mut wanted) = (String::new(), String::new());
        for flow in flows() {
            let octets: Vec<_> = flow.octets().iter().map(u8::to_string).collect();
            let octets = octets.join(",");
            writeln!(
                c,
                "__builtin_memcpy(&flow, (__u8[]){{{octets}}}, sizeof(flow)); print(&control, &flow);"
            )
            .unwrap();
            let hash = hash(&KEYS, &flow);
            let places: Vec<_> = slots(hash, 1_000_003).collect();
            let (first, second) = (places[0] / BUCKET, places[BUCKET] / BUCKET);
            writeln!(wanted, "{hash:x} {first} {second}").unwrap();
            assert_eq!(places[0] % BUCKET, hash as usize % BUCKET);
        }
        let keys: Vec<_> = KEYS.iter().map(|key| format!("{key}ull")).collect();
        let program = PROGRAM.replace("KEYS", &keys.join(",")).replace("FLOWS", &c);
        let folder = std::env::temp_dir().join(format!("sixway-hash-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (source, binary) = (folder.join("hash.c"), folder.join("hash"));
        std::fs::write(&source, program).unwrap();
        let headers = concat!(env!("CARGO_MANIFEST_DIR"), "/bpf");
        let clang = std::env::var("CLANG").unwrap_or_else(|_| "clang".into());
        let arguments = ["-w", "-O1", "-I", headers, "-I", env!("OUT_DIR"), "-o"];
        let output = Command::new(clang).args(arguments).args([&binary, &source]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let output = Command::new(&binary).output().unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), wanted);
    }
}
