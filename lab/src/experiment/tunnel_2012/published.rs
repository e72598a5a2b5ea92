//! What the paper printed.

use crate::analyse::Published;

/// The packet sizes. The paper's text names 64, 1,024 and 1,536; the others follow from fourteen columns in even steps.
pub const SIZES: [f64; 14] = [
    64.0, 128.0, 256.0, 512.0, 768.0, 1_024.0, 1_280.0, 1_536.0, 1_792.0, 2_048.0, 2_304.0, 2_560.0, 2_816.0,
    3_072.0,
];

const TCP: &[&str] = &["ipv6-tcp", "tunnel-tcp", "overhead-tcp"];
const UDP: &[&str] = &["ipv6-udp", "tunnel-udp", "overhead-udp"];

/// Its round-trip times. It printed the overhead of UDP as native less tunnel; here both are tunnel less native.
pub const PUBLISHED: &[Published] = &[
    Published {
        device: "Cisco 2821, TCP",
        source: "round-trip times over TCP, by D-ITG",
        series: "ditg",
        axis: "octets",
        fixed: &[],
        values: TCP,
        rows: &[
            (64.0, &[0.241, 0.452, 0.211]),
            (128.0, &[0.483, 0.854, 0.371]),
            (256.0, &[0.915, 1.762, 0.847]),
            (512.0, &[1.715, 3.311, 1.596]),
            (768.0, &[2.105, 4.533, 2.428]),
            (1_024.0, &[3.649, 5.907, 2.258]),
            (1_280.0, &[4.125, 7.409, 3.284]),
            (1_536.0, &[4.69, 8.531, 3.841]),
            (1_792.0, &[5.879, 10.209, 4.33]),
            (2_048.0, &[7.05, 11.193, 4.143]),
            (2_304.0, &[6.924, 11.386, 4.462]),
            (2_560.0, &[6.92, 11.993, 5.073]),
            (2_816.0, &[8.533, 14.829, 6.296]),
            (3_072.0, &[8.589, 15.509, 6.92]),
        ],
    },
    Published {
        device: "Cisco 2821, UDP",
        source: "round-trip times over UDP, by D-ITG",
        series: "ditg",
        axis: "octets",
        fixed: &[],
        values: UDP,
        rows: &[
            (64.0, &[0.253, 0.25, -0.003]),
            (128.0, &[0.391, 0.39, -0.001]),
            (256.0, &[0.599, 0.602, 0.003]),
            (512.0, &[1.015, 1.016, 0.001]),
            (768.0, &[1.434, 1.42, -0.014]),
            (1_024.0, &[1.836, 1.839, 0.003]),
            (1_280.0, &[2.279, 2.261, -0.018]),
            (1_536.0, &[2.951, 2.844, -0.107]),
            (1_792.0, &[3.285, 3.289, 0.004]),
            (2_048.0, &[3.73, 3.687, -0.043]),
            (2_304.0, &[4.167, 4.101, -0.066]),
            (2_560.0, &[4.544, 4.534, -0.01]),
            (2_816.0, &[5.014, 4.938, -0.076]),
            (3_072.0, &[5.549, 5.501, -0.048]),
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_overhead_is_tunnel_less_native() {
        for table in PUBLISHED {
            assert!(table.rows.iter().map(|(octets, _)| *octets).eq(SIZES), "{}", table.device);
            for (octets, row) in table.rows {
                let [native, tunnel, overhead] = row else { panic!("{octets}") };
                assert!((tunnel - native - overhead).abs() < 0.001, "{octets}");
            }
        }
    }
}
