//! The DNS64 of a gateway: its threads, its connections and its access list.

use super::anchors::AnchorKeeper;
use super::dns64_plan::{access, facts, plan, streams};
use super::dns64_view::Dns64View;
use super::error::RunError;
use super::leases::HostNames;
use crate::config::Config;
use crate::dns64::Service;
use crate::dns64::streams::{StreamContext, StreamFault, Streams};
use crate::host::{addresses, addresses_now};
use crate::worker::Clock;
use sixway_control::dns64::{Access, LeasedNames};
use sixway_dataplane::mechanism::nat46::Mappings;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// How often this host's addresses are looked at.
const LOOK: Duration = Duration::from_secs(1);

/// The DNS64 while the gateway runs.
#[derive(Debug)]
pub(super) struct Dns64<'c> {
    config: &'c Config,
    /// Before the threads, which it queries: it is dropped first.
    streams: Option<Streams>,
    service: Service,
    view: Arc<Dns64View>,
    anchors: Option<AnchorKeeper>,
    /// Which clients may query.
    access: Access,
}

impl<'c> Dns64<'c> {
    /// Starts it, if the configuration has one; `mappings` are those of a NAT46, `names` those of hosts whose addresses are leased.
    ///
    /// # Errors
    /// What could not be had.
    pub(super) fn start(
        config: &'c Config,
        clock: Clock,
        (mappings, names): (Option<Arc<Mappings>>, Option<HostNames>),
    ) -> Result<Option<Self>, RunError> {
        let Some(dns64) = &config.dns64 else { return Ok(None) };
        let (believed, anchors) = AnchorKeeper::load(dns64, clock).map_err(RunError::Dns64)?;
        let access = access(config, &addresses());
        let Some(mut plan) = plan(config, access.clone(), believed, mappings) else { return Ok(None) };
        plan.leases = names.map(|names| Arc::new(names) as Arc<dyn LeasedNames>);
        let facts = facts(config, &plan);
        // What was started ends when it is dropped.
        let (service, queries) =
            Service::start(plan, clock).map_err(|error| RunError::Dns64(error.to_string()))?;
        let posts = service.posts().clone();
        let context = StreamContext { posts: posts.clone(), access: access.clone(), queries };
        let streams = Streams::start(&streams(dns64), context).map_err(refused)?;
        let view = Dns64View::new(posts, facts, streams.view());
        Ok(Some(Self { config, streams: Some(streams), service, view: Arc::new(view), anchors, access }))
    }

    /// What the admin API sees.
    pub(super) fn view(&self) -> Arc<Dns64View> {
        Arc::clone(&self.view)
    }

    /// A summary of what it serves.
    pub(super) async fn serves(&self) -> String {
        self.view.serves().await
    }

    /// Runs until a thread fails; returns why.
    pub(super) async fn keep(&mut self) -> String {
        let mut second = tokio::time::interval(LOOK);
        let (streams, view) = (self.service.streams(), Arc::clone(&self.view));
        let mut anchors = self.anchors.take();
        let mut follow = std::pin::pin!(async {
            match &mut anchors {
                Some(anchors) => anchors.keep(&streams, &view).await,
                None => std::future::pending().await,
            }
        });
        loop {
            tokio::select! {
                error = self.service.first_end() => return error,
                () = &mut follow => {}
                _ = second.tick() => self.each_second().await,
            }
        }
    }

    async fn each_second(&mut self) {
        self.service.look_for_addresses();
        // If the kernel does not list addresses, the access list stays.
        if let Some(addresses) = addresses_now() {
            self.admit(access(self.config, &addresses));
        }
        self.view.sample().await;
    }

    fn admit(&mut self, now: Access) {
        if self.access == now {
            return;
        }
        if let Some(streams) = &self.streams {
            streams.set_access(now.clone());
        }
        self.service.set_access(now.clone());
        self.access = now;
    }

    /// Ends it.
    pub(super) fn stop(&mut self) {
        drop(self.streams.take());
        self.service.stop();
    }
}

fn refused(fault: StreamFault) -> RunError {
    RunError::Dns64(match &fault {
        StreamFault::Listen(address, error) if error.kind() == io::ErrorKind::PermissionDenied => format!(
            "sixway needs CAP_NET_BIND_SERVICE to listen on {address} (TCP): ports below 1024 are reserved. Run it as root, or: \
             setcap cap_net_bind_service+ep $(command -v sixway)"
        ),
        fault => fault.to_string(),
    })
}
