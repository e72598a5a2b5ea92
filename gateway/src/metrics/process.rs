//! Metrics of the process, with the names that Prometheus' client libraries have for them.

use procfs::process::Process;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use std::fmt;

/// The resources of the process.
#[derive(Clone, Debug, Default)]
pub struct ProcessSample {
    /// CPU time in seconds.
    pub cpu_seconds: f64,
    /// Memory that is mapped, in octets.
    pub virtual_memory: u64,
    /// Memory that is resident, in octets.
    pub resident_memory: u64,
    /// Open file descriptors.
    pub open_files: u64,
    /// Most of them.
    pub most_files: u64,
    /// Threads.
    pub threads: u64,
    /// Seconds since 1970 at which it was started.
    pub started: f64,
}

impl ProcessSample {
    /// This process; `None` where /proc cannot be read.
    pub fn now() -> Option<Self> {
        let process = Process::myself().ok()?;
        let stat = process.stat().ok()?;
        let ticks = procfs::ticks_per_second() as f64;
        let booted = procfs::boot_time_secs().ok()? as f64;
        let most = process.limits().ok().map(|limits| limits.max_open_files.soft_limit);
        Some(Self {
            cpu_seconds: (stat.utime + stat.stime) as f64 / ticks,
            virtual_memory: stat.vsize,
            resident_memory: stat.rss * procfs::page_size(),
            open_files: process.fd_count().ok()? as u64,
            most_files: match most {
                Some(procfs::process::LimitValue::Value(value)) => value,
                Some(procfs::process::LimitValue::Unlimited) | None => u64::MAX,
            },
            threads: stat.num_threads.try_into().unwrap_or_default(),
            started: booted + stat.starttime as f64 / ticks,
        })
    }

    pub(super) fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let cpu = encoder.encode_descriptor(
            "process_cpu_seconds",
            "Total user and system CPU time spent in seconds.",
            None,
            MetricType::Counter,
        )?;
        ConstCounter::new(self.cpu_seconds).encode(cpu)?;
        let gauges = [
            ("process_virtual_memory_bytes", "Virtual memory size in bytes.", self.virtual_memory as f64),
            ("process_resident_memory_bytes", "Resident memory size in bytes.", self.resident_memory as f64),
            ("process_open_fds", "Number of open file descriptors.", self.open_files as f64),
            ("process_max_fds", "Maximum number of open file descriptors.", self.most_files as f64),
            ("process_threads", "Number of OS threads in the process.", self.threads as f64),
            (
                "process_start_time_seconds",
                "Start time of the process since unix epoch in seconds.",
                self.started,
            ),
        ];
        for (name, help, value) in gauges {
            let encoder = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            ConstGauge::new(value).encode(encoder)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_used_something() {
        let sample = ProcessSample::now().unwrap();
        assert!(
            sample.resident_memory > 1 << 20 && sample.virtual_memory >= sample.resident_memory,
            "{sample:?}"
        );
        assert!(sample.open_files >= 3 && sample.most_files > sample.open_files, "{sample:?}");
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64();
        assert!(sample.threads >= 1 && (now - 86_400.0..=now + 2.0).contains(&sample.started), "{sample:?}");
    }
}
