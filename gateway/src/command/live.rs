//! `sixway trace --live`: packets as they pass the running gateway.

use super::failure::Failure;
use super::output::say;
use super::show::failure;
use crate::admin::{Client, MAX_LIVE};
use crate::view::{FastPathRow, LiveRow};
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// A watch that ends this much before its time was ended by another one.
const EARLY: Duration = Duration::from_millis(500);

/// Which packets, and for how long.
#[derive(Debug)]
pub(super) struct Watched {
    pub from: Option<IpAddr>,
    pub to: Option<IpAddr>,
    pub protocol: Option<String>,
    pub port: Option<u16>,
    pub drops: bool,
    pub count: Option<u64>,
    pub seconds: Option<u64>,
    pub json: bool,
}

/// Shows them until the time or the number is over.
pub(super) fn run(watched: &Watched, client: &Client) -> Result<(), Failure> {
    let fast_path: Option<FastPathRow> = client.get("/v1/fastpath", &[]).map_err(failure)?;
    if fast_path.is_some_and(|row| !row.summary.is_off()) && !watched.json {
        say(
            "Packets in the fast path are not seen here; `sixway fastpath off` moves all flows to the engine.",
        );
    }
    let until = watched.seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let mut left = watched.count.unwrap_or(u64::MAX);
    while left > 0 {
        let seconds = match until {
            None => MAX_LIVE,
            Some(until) => {
                match until.saturating_duration_since(Instant::now()).as_secs_f64().ceil() as u64 {
                    0 => break,
                    seconds => seconds.min(MAX_LIVE),
                }
            }
        };
        let text = |address: IpAddr| address.to_string();
        let query = [
            ("from", watched.from.map(text)),
            ("to", watched.to.map(text)),
            ("protocol", watched.protocol.clone()),
            ("port", watched.port.map(|port| port.to_string())),
            ("drops", watched.drops.then(|| "true".to_owned())),
            ("seconds", Some(seconds.to_string())),
        ];
        let (asked, mut garbled) = (Instant::now(), None);
        let each = |line: &str| {
            if watched.json {
                say(line);
            } else {
                match serde_json::from_str::<LiveRow>(line) {
                    Ok(row) => tell(&row),
                    Err(error) => garbled = Some(error.to_string()),
                }
            }
            left -= 1;
            left > 0 && garbled.is_none()
        };
        client.lines("/v1/live", &query, each).map_err(failure)?;
        if let Some(what) = garbled {
            return Err(Failure::Failed(format!("invalid response from the gateway: {what}")));
        }
        // Watching again would end the other watcher, which would then end this one, and so on.
        if left > 0 && asked.elapsed() + EARLY < Duration::from_secs(seconds) {
            return Err(Failure::Failed("another watch of this gateway began, or it ends".into()));
        }
    }
    Ok(())
}

fn tell(row: &LiveRow) {
    if row.skipped > 0 {
        say(&format!("({} packets not shown: too many)", row.skipped));
    }
    say(&format!("{}\n    {}", row.packet, row.fate));
    if let Some(sent) = &row.sent {
        say(&format!("    {sent}"));
    }
}
