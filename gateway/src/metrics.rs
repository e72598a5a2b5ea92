//! Metrics for Prometheus, in the OpenMetrics text format: every counter and drop reason with its help text from the
//! engine's own lists, and the fill of every bounded table, all by worker; and the gateway's own counters.

mod alarms;
mod dns64;
mod event_log;
mod fast_path;
mod format;
mod nat46;
mod pcp;
mod process;
mod teredo;
mod teredo_server;

pub use format::Format;
pub use process::ProcessSample;

use crate::view::{
    Dns64Row, FastPathRow, HostRow, MappingsRow, PcpRow, RouterAdvertisementRow, SinkRow, TeredoRow,
    TeredoServerRow,
};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use sixway_dataplane::{Counters, DropReason};
use sixway_fastpath::Taken;
use sixway_link::LinkCounters;
use std::fmt;

/// How full a bounded table is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gauge {
    /// The metric's name behind `sixway_`.
    pub name: &'static str,
    /// What it measures.
    pub help: &'static str,
    /// The mechanism that keeps the table, with its number: `nat64-0`.
    pub mechanism: String,
    /// The transport protocol, where there is one table for each.
    pub protocol: Option<&'static str>,
    /// The value.
    pub value: u64,
}

/// The report of one worker.
#[derive(Clone, Debug)]
pub struct WorkerSample {
    /// Its number.
    pub worker: u8,
    /// Its engine's counters.
    pub counters: Counters,
    /// Its queues' counters.
    pub link: LinkCounters,
    /// Its tables.
    pub gauges: Vec<Gauge>,
}

/// What is counted outside of the workers.
#[derive(Clone, Debug, Default)]
pub struct GatewaySample {
    /// Router advertisements, a row for each link.
    pub advertisements: Vec<RouterAdvertisementRow>,
    /// What steering took to the device; `None` where nothing is steered.
    pub steered: Option<Taken>,
    /// DNS64, if configured.
    pub dns64: Option<Dns64Row>,
    /// The Teredo server, if configured.
    pub teredo_server: Option<TeredoServerRow>,
    /// The PCP server, if configured.
    pub pcp: Option<PcpRow>,
    /// The fast path, if configured.
    pub fast_path: Option<FastPathRow>,
    /// What other programs changed on the host, if there is a device.
    pub host: Option<HostRow>,
    /// The sinks of the event log.
    pub event_log: Vec<SinkRow>,
    /// The alarms of the stateful translators: the translator, what it is about, and whether it is raised.
    pub alarms: Vec<(String, &'static str, bool)>,
    /// Concentrators and hosts of 4over6, and whether a file of their leases fails.
    pub lease_files: Vec<(String, bool)>,
    /// Queries to concentrators of 4over6, by what became of them.
    pub lease_queries: Vec<(String, Vec<(&'static str, u64)>)>,
    /// The mappings of each NAT46, by its name.
    pub nat46: Vec<(String, MappingsRow)>,
    /// Teredo's relays, without their peers.
    pub teredo: Vec<TeredoRow>,
    /// The resources of the process.
    pub process: Option<ProcessSample>,
}

/// The metrics of all workers and of the gateway, as text.
pub fn encode(samples: Vec<WorkerSample>, gateway: GatewaySample) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    if let Some(process) = gateway.process.clone() {
        registry.register_collector(Box::new(OfProcess(process)));
    }
    let sixway = registry.sub_registry_with_prefix("sixway");
    sixway.register_collector(Box::new(BuildInfo));
    sixway.register_collector(Box::new(WorkerSamples(samples)));
    sixway.register_collector(Box::new(gateway));
    let mut text = String::new();
    text::encode(&mut text, &registry)?;
    Ok(text)
}

#[derive(Debug)]
struct OfProcess(ProcessSample);

impl Collector for OfProcess {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.0.encode(&mut encoder)
    }
}

/// Which program this is.
#[derive(Debug)]
struct BuildInfo;

impl Collector for BuildInfo {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let help = "A metric with the constant value 1: the version of the program.";
        let mut family = encoder.encode_descriptor("build_info", help, None, MetricType::Gauge)?;
        let labels = [("version", env!("CARGO_PKG_VERSION"))];
        ConstGauge::new(1_u64).encode(family.encode_family(&labels)?)
    }
}

/// The base unit of Prometheus: `bytes`.
fn metric_name(name: &str) -> String {
    name.replace('.', "_").replace("octets", "bytes")
}

#[derive(Debug)]
struct WorkerSamples(Vec<WorkerSample>);

impl Collector for WorkerSamples {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.counters(&mut encoder)?;
        self.link(&mut encoder)?;
        self.drops(&mut encoder)?;
        self.gauges(&mut encoder)
    }
}

impl Collector for GatewaySample {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.advertisements(&mut encoder)?;
        self.steered(&mut encoder)?;
        self.host(&mut encoder)?;
        event_log::encode(&self.event_log, &mut encoder)?;
        alarms::encode(&self.alarms, &mut encoder)?;
        self.lease_files(&mut encoder)?;
        self.lease_queries(&mut encoder)?;
        nat46::encode(&self.nat46, &mut encoder)?;
        teredo::encode(&self.teredo, &mut encoder)?;
        self.fast_path.as_ref().map_or(Ok(()), |row| fast_path::encode(row, &mut encoder))?;
        self.teredo_server.as_ref().map_or(Ok(()), |row| teredo_server::encode(row, &mut encoder))?;
        self.pcp.as_ref().map_or(Ok(()), |row| pcp::encode(row, &mut encoder))?;
        self.dns64.as_ref().map_or(Ok(()), |row| dns64::encode(row, &mut encoder))
    }
}

/// A counter of advertising interfaces: its name, its help, and its value.
type OfLink = (&'static str, &'static str, fn(&RouterAdvertisementRow) -> u64);

/// The counters of advertising interfaces.
const OF_LINKS: [OfLink; 6] = [
    ("router_advertisements_multicast", "Advertisements multicast to all nodes of the link.", |row| {
        row.multicast
    }),
    ("router_advertisements_unicast", "Advertisements unicast to a soliciting host.", |row| row.unicast),
    ("router_solicitations", "Router solicitations received.", |row| row.solicitations),
    (
        "router_solicitations_dropped",
        "Router solicitations dropped: too many were waiting for a response.",
        |row| row.solicitations_dropped,
    ),
    ("neighbour_discovery_malformed", "Neighbour discovery messages that failed validation.", |row| {
        row.malformed
    }),
    (
        "router_advertisements_inconsistent",
        "Advertisements of other routers that contradict ours (RFC 4861 section 6.2.7).",
        |row| row.inconsistencies,
    ),
];

impl GatewaySample {
    fn advertisements(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        for (name, help, value) in OF_LINKS {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for row in &self.advertisements {
                let link = [("link", row.link.clone())];
                ConstCounter::new(value(row)).encode(family.encode_family(&link)?)?;
            }
        }
        Ok(())
    }

    fn lease_files(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        if self.lease_files.is_empty() {
            return Ok(());
        }
        let help = "1 while leases cannot be written to their file, or those of Kea cannot be read.";
        let mut family = encoder.encode_descriptor("lease_file_failing", help, None, MetricType::Gauge)?;
        for (mechanism, is_failing) in &self.lease_files {
            let labels = [("mechanism", mechanism.as_str())];
            ConstGauge::new(u64::from(*is_failing)).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }

    fn lease_queries(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        if self.lease_queries.is_empty() {
            return Ok(());
        }
        let help = "Queries for leases to concentrators of 4over6, by what became of them.";
        let mut family = encoder.encode_descriptor("lease_queries", help, None, MetricType::Counter)?;
        for (mechanism, outcomes) in &self.lease_queries {
            for (outcome, queries) in outcomes {
                let labels = [("mechanism", mechanism.as_str()), ("outcome", outcome)];
                ConstCounter::new(*queries).encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }

    fn host(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let Some(host) = &self.host else { return Ok(()) };
        let help = "Parts of the host's configuration that another program changed and the gateway restored.";
        let mut family = encoder.encode_descriptor("host_restored", help, None, MetricType::Counter)?;
        for row in &host.restored {
            ConstCounter::new(row.times).encode(family.encode_family(&[("what", row.what.clone())])?)?;
        }
        let help = "Parts of the host's configuration that are left changed, because another program changes them again and again.";
        let left = encoder.encode_descriptor("host_left_alone", help, None, MetricType::Gauge)?;
        ConstGauge::new(host.left_alone.len() as u64).encode(left)
    }

    fn steered(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let Some(taken) = self.steered else { return Ok(()) };
        let counters = [
            ("steered_packets", "Tunnel packets steered into the device.", taken.packets),
            ("steered_bytes", "Octets steered into the device, outer IPv4 header included.", taken.octets),
        ];
        for (name, help, value) in counters {
            let encoder = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            ConstCounter::new(value).encode(encoder)?;
        }
        Ok(())
    }
}

impl WorkerSamples {
    fn counters(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        for (index, (name, help, _)) in Counters::default().named().enumerate() {
            // It goes down when a packet is complete.
            let gauge = name == "held";
            let kind = if gauge { MetricType::Gauge } else { MetricType::Counter };
            let name = metric_name(name);
            let mut family = encoder.encode_descriptor(&name, help, None, kind)?;
            for sample in &self.0 {
                let Some((_, _, value)) = sample.counters.named().nth(index) else { continue };
                let worker = [("worker", sample.worker.to_string())];
                let encoder = family.encode_family(&worker)?;
                if gauge {
                    ConstGauge::new(value).encode(encoder)?
                } else {
                    ConstCounter::new(value).encode(encoder)?
                }
            }
        }
        Ok(())
    }

    fn link(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        for (index, (name, help, _)) in LinkCounters::default().named().enumerate() {
            let name = metric_name(&format!("link_{name}"));
            let mut family = encoder.encode_descriptor(&name, help, None, MetricType::Counter)?;
            for sample in &self.0 {
                let Some((_, _, value)) = sample.link.named().nth(index) else { continue };
                let worker = [("worker", sample.worker.to_string())];
                ConstCounter::new(value).encode(family.encode_family(&worker)?)?;
            }
        }
        Ok(())
    }

    fn drops(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let mut family =
            encoder.encode_descriptor("dropped", "Frames dropped, by reason.", None, MetricType::Counter)?;
        for sample in &self.0 {
            for (reason, count) in DropReason::ALL.iter().zip(sample.counters.dropped) {
                let labels = [("reason", reason.name().into()), ("worker", sample.worker.to_string())];
                ConstCounter::new(count).encode(family.encode_family(&labels)?)?;
            }
        }
        let mut family = encoder.encode_descriptor(
            "drop_reason",
            "Description of each drop reason.",
            None,
            MetricType::Gauge,
        )?;
        for reason in DropReason::ALL {
            let labels = [("reason", reason.name()), ("help", reason.help())];
            ConstGauge::new(1).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }

    /// Gauges of one name are written together, as the format wants it.
    fn gauges(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let mut names: Vec<(&str, &str)> =
            self.0.iter().flat_map(|sample| &sample.gauges).map(|gauge| (gauge.name, gauge.help)).collect();
        names.sort_unstable();
        names.dedup();
        for (name, help) in names {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for sample in &self.0 {
                for gauge in sample.gauges.iter().filter(|gauge| gauge.name == name) {
                    let mechanism = ("mechanism", gauge.mechanism.clone());
                    let protocol = gauge.protocol.map(|protocol| ("protocol", protocol.to_owned()));
                    let worker = ("worker", sample.worker.to_string());
                    let labels: Vec<_> = [mechanism].into_iter().chain(protocol).chain([worker]).collect();
                    ConstGauge::new(gauge.value).encode(family.encode_family(&labels.as_slice())?)?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text() -> String {
        let mut counters = Counters { received: 7, held: 2, ..Counters::default() };
        counters.dropped[DropReason::NoBinding as usize] = 3;
        let gauge = |name, protocol, value| Gauge {
            name,
            help: "Live sessions.",
            mechanism: "nat64-0".into(),
            protocol,
            value,
        };
        let gauges = vec![gauge("sessions", None, 5), gauge("pool_ports_used", Some("udp"), 6)];
        let link = LinkCounters { no_room: 4, ..LinkCounters::default() };
        let row =
            RouterAdvertisementRow { link: "eth1".into(), unicast: 6, ..RouterAdvertisementRow::default() };
        let steered = Some(Taken { packets: 8, octets: 900 });
        let gateway = GatewaySample {
            advertisements: vec![row],
            steered,
            event_log: vec![SinkRow { name: "workers".into(), lost: 5, ..SinkRow::default() }],
            alarms: vec![("nat64".into(), "udp_ports", true)],
            lease_files: vec![("hub".into(), true), ("host".into(), false)],
            lease_queries: vec![("hub".into(), vec![("ack", 2), ("not_client", 7)])],
            process: ProcessSample::now(),
            ..GatewaySample::default()
        };
        encode(vec![WorkerSample { worker: 1, counters, link, gauges }], gateway).unwrap()
    }

    #[test]
    fn every_counter_and_every_reason_is_there_with_its_help() {
        let text = text();
        for (name, help, _) in Counters::default().named() {
            let name = metric_name(name);
            assert!(text.contains(&format!("# HELP sixway_{name} {help}\n")), "HELP of {name}");
        }
        for reason in DropReason::ALL {
            assert!(
                text.contains(&format!("sixway_dropped_total{{reason=\"{}\",worker=\"1\"}}", reason.name()))
            );
            assert!(text.contains(reason.help()));
        }
    }

    #[test]
    fn values_bear_their_worker_and_the_text_ends_as_the_format_wants() {
        let text = text();
        assert!(text.contains("sixway_received_total{worker=\"1\"} 7\n"));
        assert!(text.contains("sixway_held{worker=\"1\"} 2\n"));
        assert!(text.contains("sixway_dropped_total{reason=\"NoBinding\",worker=\"1\"} 3\n"));
        assert!(text.contains("sixway_link_no_room_total{worker=\"1\"} 4\n"));
        assert!(text.contains("sixway_sessions{mechanism=\"nat64-0\",worker=\"1\"} 5\n"));
        assert!(text.contains("sixway_router_advertisements_unicast_total{link=\"eth1\"} 6\n"));
        assert!(
            text.contains("sixway_pool_ports_used{mechanism=\"nat64-0\",protocol=\"udp\",worker=\"1\"} 6\n")
        );
        assert!(text.contains("sixway_steered_packets_total 8\n"), "{text}");
        assert!(text.contains("sixway_events_lost_total{sink=\"workers\"} 5\n"), "{text}");
        for (mechanism, value) in [("hub", 1), ("host", 0)] {
            let line = format!("sixway_lease_file_failing{{mechanism=\"{mechanism}\"}} {value}\n");
            assert!(text.contains(&line), "{text}");
        }
        assert!(text.contains("sixway_alarm{mechanism=\"nat64\",resource=\"udp_ports\"} 1\n"), "{text}");
        assert!(text.contains(concat!("sixway_build_info{version=\"", env!("CARGO_PKG_VERSION"), "\"} 1\n")));
        assert!(
            text.contains("\nprocess_resident_memory_bytes ") && !text.contains("sixway_process"),
            "{text}"
        );
        assert!(
            !text
                .replace("HELP", "\n")
                .lines()
                .any(|line| line.starts_with("sixway_") && line.contains("octets"))
        );
        assert!(text.ends_with("# EOF\n"));
    }
}
