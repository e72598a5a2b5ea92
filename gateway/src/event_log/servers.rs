//! The configured syslog servers and IPFIX collectors, each with its spool.

use super::encode::Encode;
use super::ipfix::Ipfix;
use super::quota::Quota;
use super::remote::Remote;
use super::sink_state::SinkState;
use super::spool::Spool;
use super::syslog::Syslog;
use super::tls::Tls;
use super::transport::{Transport, Way};
use crate::config::{EventLog, LogTransport, SyslogServer};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

/// The name of a server.
fn name(kind: &str, transport: LogTransport, server: SocketAddr) -> String {
    format!("{kind} {} {server}", transport.as_str())
}

/// The file with what waits for a server of this gateway.
fn spool(config: &EventLog, gateway: &str, name: &str) -> PathBuf {
    let name = name.replace(' ', "-").replace(['/', ':', '[', ']'], "_");
    config.spool.join(format!("{gateway}-{name}.spool"))
}

/// The spools of all servers.
pub(super) fn spools(config: &EventLog, gateway: &str) -> Vec<PathBuf> {
    let syslog = config.syslog.iter().map(|it| name("syslog", it.transport, it.server));
    let ipfix = config.ipfix.iter().map(|it| name("ipfix", it.transport, it.collector));
    syslog.chain(ipfix).map(|name| spool(config, gateway, &name)).collect()
}

/// Starts a thread for each of them.
///
/// # Errors
/// The kernel has no thread left.
pub(super) fn start(
    config: &EventLog,
    gateway: &str,
    quotas: &Arc<[Quota]>,
    confine: fn(),
) -> Result<Vec<Remote>, String> {
    let host = nix::unistd::gethostname().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut remotes = Vec::new();
    let mut start = |name: String, encode: Box<dyn Encode>, transport| {
        let path = spool(config, gateway, &name);
        let (spool, state) = (Spool::open(&path, config.spool_size), SinkState::with_spool(name));
        let remote = Remote::start(encode, transport, spool, state, confine);
        remotes.push(remote.map_err(|error| format!("log: no thread: {error}"))?);
        Ok::<(), String>(())
    };
    for syslog in &config.syslog {
        let is_stream = syslog.transport != LogTransport::Udp;
        let encode = Box::new(Syslog::new(syslog.facility, &host, is_stream));
        let name = name("syslog", syslog.transport, syslog.server);
        start(name, encode, Transport::new(syslog.server, way(syslog)))?;
    }
    for ipfix in &config.ipfix {
        let repeats = ipfix.transport == LogTransport::Udp;
        let encode = Box::new(Ipfix::new(ipfix.observation_domain, repeats, Arc::clone(quotas)));
        let name = name("ipfix", ipfix.transport, ipfix.collector);
        start(name, encode, Transport::new(ipfix.collector, if repeats { Way::Udp } else { Way::Tcp }))?;
    }
    Ok(remotes)
}

/// By what messages go to a syslog server.
fn way(syslog: &SyslogServer) -> Way {
    match (syslog.transport, &syslog.name) {
        (LogTransport::Udp, _) => Way::Udp,
        (LogTransport::Tls, Some(name)) => Way::Tls(Tls::new(name, syslog.ca.as_deref())),
        // Without a name there is no TLS: the configuration was checked.
        (LogTransport::Tcp | LogTransport::Tls, _) => Way::Tcp,
    }
}
