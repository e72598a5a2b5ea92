//! Tables of the report that need no more than a line in the plan.

use crate::analyse::{Column, Table};

/// Throughput, whatever differs.
pub const THROUGHPUT: &[Column] = &[
    Column { value: "throughput", title: "frames, no loss" },
    Column { value: "throughput-given", title: "frames, given loss" },
    Column { value: "bits", title: "at the given loss" },
    Column { value: "ceiling", title: "the tester's limit" },
    Column { value: "cpu-per-packet", title: "CPU a frame" },
    Column { value: "frames-per-cpu-second", title: "frames" },
    Column { value: "trials", title: "trials" },
];

/// 464XLAT.
pub const DOUBLE: Table = Table {
    title: "Throughput of two translators, a CLAT and a PLAT of 464XLAT",
    series: "double",
    axes: &["frame"],
    columns: THROUGHPUT,
};

/// RFC 9693 §5.2.
pub const CORES_TABLE: Table = Table {
    title: "Throughput of frames of 84 octets by workers, each with a CPU (RFC 9693 §5.2)",
    series: "cores",
    axes: &["workers"],
    columns: THROUGHPUT,
};

/// RFC 2544 §26.4.
pub const BURSTS: Table = Table {
    title: "Back-to-back frames: the longest burst without loss (RFC 2544 §26.4)",
    series: "back-to-back",
    axes: &["frame"],
    columns: &[
        Column { value: "burst", title: "frames" },
        Column { value: "burst-rate", title: "frames of the burst" },
        Column { value: "ceiling", title: "the tester's limit" },
        Column { value: "trials", title: "trials" },
    ],
};

/// RFC 2544 §26.5.
pub const RECOVERY: Table = Table {
    title: "System recovery after an overload (RFC 2544 §26.5)",
    series: "recovery",
    axes: &["frame"],
    columns: &[
        Column { value: "throughput-given", title: "throughput, given loss" },
        Column { value: "overload", title: "overload" },
        Column { value: "loss", title: "loss" },
        Column { value: "recovery", title: "recovery" },
    ],
};

/// RFC 2544 §26.6.
pub const RESET: Table = Table {
    title: "Reset of the process under load (RFC 8219 §7.7)",
    series: "reset",
    axes: &["frame"],
    columns: &[
        Column { value: "rate", title: "offered" },
        Column { value: "restart", title: "stop and start" },
        Column { value: "reset", title: "reset time by times" },
        Column { value: "reset-by-loss", title: "reset time by loss" },
    ],
};

/// RFC 8219 §8.1.
pub const CONCURRENT: Table = Table {
    title: "Concurrent TCP connections (RFC 8219 §8.1, RFC 3511 §5.2), by the most that were tried",
    series: "tcp-capacity",
    axes: &["connections"],
    columns: &[
        Column { value: "capacity", title: "open together" },
        Column { value: "failed", title: "too many" },
        Column { value: "setup", title: "set-up" },
        Column { value: "opening", title: "all open after" },
        Column { value: "answer", title: "answer" },
        Column { value: "cpu-per-connection", title: "CPU a connection" },
        Column { value: "memory", title: "memory" },
    ],
};

/// RFC 8219 §8.2.
pub const TCP: Table = Table {
    title: "New TCP connections, each with a request and an answer (RFC 8219 §8.2, RFC 3511 §5.3)",
    series: "tcp",
    axes: &["flows"],
    columns: &[
        Column { value: "connections-rate", title: "new connections" },
        Column { value: "ceiling", title: "the tester's limit" },
        Column { value: "setup", title: "set-up" },
        Column { value: "cpu-per-connection", title: "CPU a connection" },
        Column { value: "loss", title: "failures" },
    ],
};
