//! What happens to upstreams, in words for the log.

use sixway_control::dns64::upstream::Event;

/// Says it. `names` are the upstreams', in the order of the settings.
pub(super) fn tell(event: Event, names: &[String]) {
    let name = |upstream: usize| names.get(upstream).map_or("?", String::as_str);
    match event {
        Event::Down { upstream } => tracing::warn!("DNS64: upstream {} no longer answers", name(upstream)),
        Event::Up { upstream, after } => {
            tracing::info!("DNS64: upstream {} answers again, after {} s", name(upstream), after.as_secs());
        }
        Event::WithoutEdns { upstream } => tracing::warn!(
            "DNS64: upstream {} does not understand EDNS: it is asked without, and gives no DNSSEC records",
            name(upstream)
        ),
        Event::WithoutCase { upstream } => tracing::warn!(
            "DNS64: upstream {} changes the case of names, which guards against forged replies, and cannot be asked by TCP: \
             it is asked by UDP without that guard",
            name(upstream)
        ),
        Event::ByStream { upstream } => tracing::warn!(
            "DNS64: upstream {} changes the case of names, which guards against forged replies: it is asked by TCP",
            name(upstream)
        ),
    }
}
