//! Settings of devices on the command line.

use super::guest::GuestKind;
use super::list::add_remote;
use super::remote::HostRequest;
use crate::failure::{Failure, Result};

/// Settings of devices.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct DeviceOptions {
    /// The kind of guest for devices that need another kernel: uml, qemu or kvm
    #[arg(long, value_name = "KIND")]
    pub guest: Option<String>,
    /// A device on another machine (see docs/lab.md); may be repeated
    #[arg(long, value_name = "NAME=…")]
    pub remote: Vec<String>,
    /// The sender or receiver on another machine, for tunnel-2012 (see docs/lab.md); may be given for both
    #[arg(long, value_name = "client|server=…")]
    pub remote_host: Vec<String>,
}

impl DeviceOptions {
    /// Makes them the process' own, before any device is examined.
    ///
    /// # Errors
    /// One is not written as it should be.
    pub fn apply(&self) -> Result<()> {
        if let Some(kind) = &self.guest {
            GuestKind::choose(kind)?;
        }
        let mut ends = Vec::new();
        for host in &self.remote_host {
            let request = HostRequest::parse(host)?;
            if ends.contains(&request.end) {
                return Err(Failure::Unexpected(format!(
                    "--remote-host {host}: there is one {} already",
                    request.end
                )));
            }
            ends.push(request.end.clone());
            if let Some(why) = request.why_not()? {
                return Err(Failure::Unexpected(format!("--remote-host {host}: {why}")));
            }
        }
        if self.remote.is_empty() { Ok(()) } else { add_remote(&self.remote) }
    }
}
