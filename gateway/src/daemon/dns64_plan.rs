//! The settings of the DNS64's threads, from the configuration.

use crate::config::dns64::{Dns64, ThreadsBy, Transport, Upstream};
use crate::config::{Config, HostAddress, Surroundings};
use crate::dns64::ServiceSettings;
use crate::dns64::streams::{Bounds, StreamSettings, TransportSettings, UpstreamSettings, request};
use crate::view::Dns64Facts;
use sixway_control::dns64::{Access, Anchor, NameMappings};
use sixway_dataplane::mechanism::nat46::Mappings;
use sixway_dataplane::translate::address::rfc6052::Rfc6052;
use std::net::SocketAddr;
use std::sync::Arc;

/// Which clients may query, given these addresses of this host.
pub(super) fn access(config: &Config, addresses: &[HostAddress]) -> Access {
    config.dns64_access(addresses, &Surroundings::of(addresses))
}

/// The settings of the threads.
pub(super) fn plan(
    config: &Config,
    access: Access,
    anchors: Vec<Anchor>,
    mappings: Option<Arc<Mappings>>,
) -> Option<ServiceSettings> {
    let dns64 = config.dns64.as_ref()?;
    let mappings = mappings.zip(config.nat46()).map(|(table, nat46)| NameMappings {
        table,
        excluded: nat46.excluded(),
        longest_ttl: u32::try_from(nat46.ttl.as_secs()).unwrap_or(u32::MAX),
    });
    Some(ServiceSettings {
        settings: config.dns64_settings(access, anchors)?,
        threads: dns64.bounds.threads.into(),
        one_thread_per_client: dns64.connections.threads_by == ThreadsBy::Client,
        listen: dns64.listening.listen.clone(),
        upstreams: dns64.upstreams.iter().map(Upstream::endpoint).collect(),
        names: dns64
            .upstreams
            .iter()
            .map(|it| format!("{} ({})", it.address, it.transport.as_str()))
            .collect(),
        query_log: dns64.query_log,
        mappings,
        leases: None,
    })
}

/// The settings for TCP, TLS and HTTPS.
pub(super) fn streams(dns64: &Dns64) -> StreamSettings {
    let listening = &dns64.listening;
    StreamSettings {
        tcp: listening.listen.clone(),
        tls: listening.listen_tls.clone(),
        https: listening.listen_https.clone(),
        certificate: listening.certificate.clone().zip(listening.key.clone()),
        upstreams: dns64.upstreams.iter().map(stream_upstream).collect(),
        bounds: bounds(dns64),
    }
}

fn bounds(dns64: &Dns64) -> Bounds {
    let connections = &dns64.connections;
    Bounds {
        connections: connections.connections as usize,
        connections_per_client: connections.connections_per_client.map(|most| most as usize),
        client_prefix_length: dns64.bounds.client_prefix_length,
        handshake: connections.handshake_timeout,
        idle: connections.idle_timeout,
        ..Bounds::default()
    }
}

fn stream_upstream(upstream: &Upstream) -> UpstreamSettings {
    let name = || upstream.name.clone().unwrap_or_else(|| upstream.address.ip().to_string());
    let way = match upstream.transport {
        Transport::Udp | Transport::Tcp => TransportSettings::Tcp,
        Transport::Tls => TransportSettings::Tls { name: name(), ca: upstream.ca.clone() },
        Transport::Https => TransportSettings::Https {
            name: name(),
            ca: upstream.ca.clone(),
            path: upstream.path.clone().unwrap_or_else(|| request::PATH.to_owned()),
        },
    };
    UpstreamSettings { address: upstream.endpoint(), way }
}

/// Constant facts for the admin API.
pub(super) fn facts(config: &Config, plan: &ServiceSettings) -> Dns64Facts {
    let Some(dns64) = &config.dns64 else { return Dns64Facts::default() };
    let listening = &dns64.listening;
    let with = |addresses: &[SocketAddr], what: &str| -> Vec<String> {
        addresses.iter().map(|address| format!("{address}{what}")).collect()
    };
    let mut places = with(&listening.listen, "");
    places.extend(with(&listening.listen_tls, " (tls)"));
    places.extend(with(&listening.listen_https, " (https)"));
    let mut prefixes: Vec<String> = dns64.prefixes.iter().map(|prefix| whose(config, *prefix)).collect();
    prefixes.extend(config.nat46().map(|nat46| format!("pool {} of {}", nat46.pool, nat46.name)));
    Dns64Facts {
        serves: format!("{} · {}", places.join(", "), prefixes.join(", ")),
        upstreams: plan.names.clone(),
        cache: dns64.bounds.cache,
        waiting: dns64.bounds.waiting.into(),
    }
}

/// A prefix, and the mechanism here that translates it.
fn whose(config: &Config, prefix: Rfc6052) -> String {
    let same = |own: &Rfc6052| own.prefix() == prefix.prefix();
    let nat64 = config.nat64.iter().find(|it| same(&it.prefix)).map(|it| &it.name);
    let siit = || config.siit.iter().find(|it| it.prefix.as_ref().is_some_and(same)).map(|it| &it.name);
    match nat64.or_else(siit) {
        Some(name) => format!("prefix {} from {name}", prefix.prefix()),
        None => format!("prefix {}", prefix.prefix()),
    }
}
