//! Feeds generated packets to the engine and prints what became of them, for a reference translator to judge.
//!
//! `oracle --config N --json` prints configuration N for the reference; `oracle --config N --count K --seed S` prints K
//! lines `IN_HEX OUT_HEX...` or `IN_HEX -`. `make oracle` runs both and compares.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a tool for developers, outside of the core"
)]

mod configuration;
mod generate;

use configuration::Setting;
use sixway_dataplane::engine::Engine;
use sixway_dataplane::{Frame, Instant, Outbox};
use std::fmt::Write as _;
use std::io::Write as _;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1)?.parse::<u64>().ok()
    };
    let number = value("--config").unwrap_or(0) as usize;
    let Some(setting) = Setting::all().into_iter().nth(number) else {
        eprintln!("oracle: configurations are numbered 0 to {}", Setting::all().len() - 1);
        std::process::exit(2);
    };
    if arguments.iter().any(|argument| argument == "--json") {
        println!("{}", setting.json());
        return;
    }
    let mut engine = Engine::new(&setting.engine()).unwrap();
    let show_verdicts = arguments.iter().any(|argument| argument == "--verdicts");
    let mut packets = generate::Generator::new(value("--seed").unwrap_or(1), &setting);
    let mut out = Outbox::new(256);
    let mut now = Instant::from_secs(1);
    let mut lines = std::io::BufWriter::new(std::io::stdout().lock());
    for _ in 0..value("--count").unwrap_or(1_000) {
        let packet = packets.next_packet();
        let mut frame = Frame::with_capacity(packet.len() + 256);
        frame.fill(&packet, Default::default());
        now.0 += 1_000_000_000;
        engine.process(std::slice::from_mut(&mut frame), now, &mut out);
        if show_verdicts {
            eprintln!("{:?} {}", frame.verdict, hex(&packet));
        }
        let mut line = hex(&packet);
        let leaves = frame.verdict.leaves().then(|| frame.bytes());
        let sent: Vec<String> =
            leaves.into_iter().map(hex).chain(out.frames().iter().map(|f| hex(f.bytes()))).collect();
        out.clear();
        line.push(' ');
        line.push_str(&if sent.is_empty() { "-".into() } else { sent.join(" ") });
        writeln!(lines, "{line}").unwrap();
    }
    assert!(engine.counters().frames_are_conserved());
}

fn hex(octets: &[u8]) -> String {
    octets.iter().fold(String::with_capacity(octets.len() * 2), |mut text, octet| {
        let _ = write!(text, "{octet:02x}");
        text
    })
}
