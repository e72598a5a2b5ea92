//! The keys of a Teredo client.

use super::key::{Absent, Kind, Section, Times, key};
use super::tunnel_keys::LOCAL;

/// `[teredo_client]`.
pub(crate) static TEREDO_CLIENT: Section = Section {
    name: "teredo_client",
    times: Times::Once,
    groups: &[
        &[key("name", Kind::Text, Absent::Means("`teredo_client`"), "Name in `sixway show` and in metrics.")],
        LOCAL,
        &[
            key(
                "port",
                Kind::Integer { min: 0, max: 65_535 },
                Absent::Default("0"),
                "UDP port of the client. 0: the kernel chooses one, which is kept across reloads and restarts while it is free. It belongs to the client's address.",
            ),
            key(
                "servers",
                Kind::Tables(&TEREDO_CLIENT_SERVER),
                Absent::FaultSuch("[{ address = \"192.0.2.1\", secondary = \"192.0.2.2\" }]"),
                "Teredo servers, in the order in which they are tried.",
            ),
            key(
                "interval",
                Kind::Duration { min: 5, max: 600 },
                Absent::Default("\"30 s\""),
                "Teredo Refresh Interval: how long the NAT keeps a mapping without packets, at least (RFC 4380 §2.15, RFC 6081 §5.1.1).",
            ),
            key(
                "learn_interval",
                Kind::Boolean,
                Absent::Default("false"),
                "Measure how long the NAT keeps a mapping, and use that interval (RFC 4380 §5.2.7).",
            ),
            key(
                "symmetric",
                Kind::Boolean,
                Absent::Default("true"),
                "Use Teredo also behind a symmetric NAT, which maps another port for each destination (RFC 6081 §5.2).",
            ),
            key(
                "prediction_ports",
                Kind::Integer { min: 0, max: 32 },
                Absent::Default("0"),
                "Spare UDP ports that are opened behind a symmetric NAT, one for each peer that is not reached otherwise, and whose mapped port is predicted (RFC 6081 §5.4, §5.5). 0 disables prediction; 8 are enough for a host.",
            ),
            key(
                "local_discovery",
                Kind::Boolean,
                Absent::Default("false"),
                "Look for clients on the same link by multicast (RFC 4380 §5.2.8). It reveals to the link that this host uses Teredo.",
            ),
            key(
                "client_id",
                Kind::Text,
                Absent::Means("the server is not asked to authenticate itself"),
                "Client identifier for secure qualification (RFC 4380 §5.2.2); it needs `secret_file`.",
            ),
            key(
                "secret_file",
                Kind::Path,
                Absent::Means("none"),
                "File whose first line is the secret that the servers know under `client_id`.",
            ),
            key(
                "max_peers",
                Kind::Integer { min: 1, max: 100_000 },
                Absent::Default("1024"),
                "Maximum number of peers in the table.",
            ),
            key(
                "firewall",
                Kind::Boolean,
                Absent::Default("true"),
                "Drop unsolicited packets to the client's address. Teredo makes this host reachable from the Internet through its NAT (RFC 6169 §3).",
            ),
        ],
    ],
};

/// `[[teredo_client.servers]]`.
pub(crate) static TEREDO_CLIENT_SERVER: Section = Section {
    name: "teredo_client.servers",
    times: Times::Several,
    groups: &[&[
        key("address", Kind::Address4, Absent::FaultSuch("\"192.0.2.1\""), "IPv4 address of the server."),
        key(
            "secondary",
            Kind::Address4,
            Absent::Means("symmetric NATs are not recognised"),
            "The server's second address, by which the kind of NAT is found (RFC 4380 §5.2.1).",
        ),
    ]],
};
