//! Log messages about upstreams.

use sixway_control::dns64::upstream::Event;

/// Says it. `names` are the upstreams', in the order of the settings.
pub(super) fn tell(event: Event, names: &[String]) {
    let name = |upstream: usize| names.get(upstream).map_or("?", String::as_str);
    match event {
        Event::Down { upstream } => tracing::warn!(
            "DNS64: upstream {} is down: no answer to probes; it is not queried until it answers",
            name(upstream)
        ),
        Event::Up { upstream, after } => {
            tracing::info!("DNS64: upstream {} is up again after {} s", name(upstream), after.as_secs());
        }
        Event::WithoutEdns { upstream } => tracing::warn!(
            "DNS64: upstream {} does not support EDNS: it is queried without, and returns no DNSSEC records",
            name(upstream)
        ),
        Event::WithoutCase { upstream } => tracing::warn!(
            "DNS64: upstream {} changes the case of names and does not answer over TCP: it is queried over UDP without this protection against forged replies; replace it",
            name(upstream)
        ),
        Event::ByStream { upstream } => tracing::warn!(
            "DNS64: upstream {} changes the case of names, which protects against forged replies: it is queried over TCP",
            name(upstream)
        ),
    }
}
