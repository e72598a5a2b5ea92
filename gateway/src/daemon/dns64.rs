//! The DNS64 of a gateway: its threads, its connections and its access list.

use super::anchors::AnchorKeeper;
use super::dns64_hosts::HostsFile;
use super::dns64_plan::{access, facts, plan, streams as streams_of};
use super::dns64_reload::Dns64Reload;
use super::dns64_view::Dns64View;
use super::error::RunError;
use super::gateway::Gateway;
use super::leases::HostNames;
use crate::config::dns64::Upstream;
use crate::config::{self, Config};
use crate::dns64::streams::{StreamContext, StreamFault, Streams};
use crate::dns64::{Inherited, Left, Reconfiguration, Service, ThreadMessage, same_places, stream_queries};
use crate::host::{addresses, addresses_now, resolv_conf};
use crate::worker::Clock;
use sixway_control::dns64::{Access, LeasedNames};
use sixway_dataplane::mechanism::nat46::Mappings;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Interval;

/// How often this host's addresses are examined.
const LOOK: Duration = Duration::from_secs(1);

/// The DNS64 while the gateway runs.
#[derive(Debug)]
pub(super) struct Dns64 {
    config: Arc<Config>,
    clock: Clock,
    /// Before the threads, which it queries: it is dropped first.
    streams: Option<Streams>,
    service: Service,
    view: Arc<Dns64View>,
    anchors: Option<AnchorKeeper>,
    /// Records of this network.
    hosts: Option<HostsFile>,
    /// The last known DNS servers of the host.
    resolv_conf: Option<String>,
    /// Which clients may query.
    access: Access,
}

impl Dns64 {
    /// Starts it, if the configuration has one; `mappings` are those of a NAT46, `names` those of hosts whose addresses are leased.
    ///
    /// # Errors
    /// What could not be had.
    pub(super) fn start(
        config: &Config,
        clock: Clock,
        (mappings, names): (Option<Arc<Mappings>>, Option<HostNames>),
        mut handed: Inherited,
    ) -> Result<Option<Self>, RunError> {
        let Some(dns64) = &config.dns64 else { return Ok(None) };
        let (believed, anchors) = AnchorKeeper::load(dns64, clock).map_err(RunError::Dns64)?;
        let access = access(config, &addresses());
        let Some(mut plan) = plan(config, access.clone(), believed, mappings) else { return Ok(None) };
        let hosts = dns64.hosts.as_deref().map(HostsFile::open);
        plan.settings.hosts = hosts.as_ref().map(HostsFile::hosts).unwrap_or_default();
        plan.leases = names.map(|names| Arc::new(names) as Arc<dyn LeasedNames>);
        let facts = facts(config, &plan);
        // What was started ends when it is dropped.
        let (service, queries) =
            Service::start(plan, clock, &mut handed).map_err(|error| RunError::Dns64(error.to_string()))?;
        let posts = service.posts().clone();
        let context = StreamContext { posts: posts.clone(), access: access.clone(), queries };
        let streams =
            Streams::start_with(&streams_of(dns64), context, &mut handed.listeners).map_err(refused)?;
        let view = Dns64View::new(posts, facts, streams.view());
        let view = Arc::new(view);
        let config = Arc::new(config.clone());
        Ok(Some(Self {
            config,
            clock,
            streams: Some(streams),
            service,
            view,
            anchors,
            resolv_conf: Some(resolv_conf()),
            hosts,
            access,
        }))
    }

    /// The data for the admin API.
    pub(super) fn view(&self) -> Arc<Dns64View> {
        Arc::clone(&self.view)
    }

    /// A summary of what it serves.
    pub(super) async fn serves(&self) -> String {
        self.view.serves().await
    }

    /// Runs until a thread fails; returns why. New configurations come through `reloads`.
    pub(super) async fn keep(
        &mut self,
        gateway: &Gateway,
        reloads: &mut mpsc::Receiver<Dns64Reload>,
    ) -> String {
        let mut second = tokio::time::interval(LOOK);
        loop {
            let mut anchors = self.anchors.take();
            let Dns64Reload { config, done } =
                match self.keep_as_it_is(anchors.as_mut(), gateway, &mut second, reloads).await {
                    Ok(reload) => reload,
                    Err(ended) => return ended,
                };
            self.anchors = anchors;
            // The caller may have given up.
            let _ = done.send(self.reconfigure(config));
        }
    }

    /// Runs until a new configuration comes, or a thread fails.
    async fn keep_as_it_is(
        &mut self,
        anchors: Option<&mut AnchorKeeper>,
        gateway: &Gateway,
        second: &mut Interval,
        reloads: &mut mpsc::Receiver<Dns64Reload>,
    ) -> Result<Dns64Reload, String> {
        let (streams, view) = (self.service.streams(), Arc::clone(&self.view));
        let mut follow = std::pin::pin!(async {
            match anchors {
                Some(anchors) => anchors.keep(&streams, &view).await,
                None => std::future::pending().await,
            }
        });
        loop {
            tokio::select! {
                error = self.service.first_end() => return Err(error),
                () = &mut follow => {}
                Some(reload) = reloads.recv() => return Ok(reload),
                _ = second.tick() => self.each_second(gateway).await,
            }
        }
    }

    /// Continues with a new configuration that differs only in keys of the DNS64, none of them about its sockets or threads.
    fn reconfigure(&mut self, config: Arc<Config>) -> Result<(), String> {
        let (Some(old), Some(new)) = (&self.config.dns64, &config.dns64) else {
            return Err("[dns64] is not configured".into());
        };
        let access = access(&config, &addresses());
        let (believed, other_keeper) = match &self.anchors {
            // The file may be older than the trust anchors.
            Some(anchors) if old.dnssec == new.dnssec => (anchors.anchors(), None),
            Some(_) | None => {
                let (believed, keeper) = AnchorKeeper::load(new, self.clock)?;
                (believed, Some(keeper))
            }
        };
        let Some(mut plan) = plan(&config, access.clone(), believed, None) else {
            return Err("[dns64] is not configured".into());
        };
        let hosts = new.hosts.as_deref().map(HostsFile::open);
        plan.settings.hosts = hosts.as_ref().map(HostsFile::hosts).unwrap_or_default();
        let facts = facts(&config, &plan);
        let kept = same_upstreams(old, new);
        let (queries, asked) = stream_queries();
        if let Some(streams) = &mut self.streams {
            let reconfigured = streams.reconfigure(&streams_of(new), access.clone(), asked);
            reconfigured.map_err(|fault| fault.to_string())?;
        }
        // From here on nothing fails.
        self.service.reconfigure(&Reconfiguration {
            settings: plan.settings,
            upstreams: plan.upstreams,
            names: plan.names,
            kept,
            query_log: plan.query_log,
            streams: queries,
        });
        match (other_keeper, &mut self.anchors) {
            (Some(keeper), anchors) => {
                self.view.see_trust(Vec::new(), Vec::new());
                *anchors = keeper;
            }
            (None, Some(anchors)) => anchors.ask_upstreams_of(new),
            (None, None) => {}
        }
        self.view.set_facts(facts);
        self.hosts = hosts;
        (self.access, self.config) = (access, config);
        Ok(())
    }

    async fn each_second(&mut self, gateway: &Gateway) {
        self.follow_system(gateway);
        if let Some(hosts) = self.hosts.as_mut().and_then(HostsFile::look_again) {
            self.view.tell(|| ThreadMessage::Hosts(Arc::clone(&hosts)));
        }
        self.service.look_for_addresses();
        // If the kernel does not list addresses, the access list stays.
        if let Some(addresses) = addresses_now() {
            self.admit(access(&self.config, &addresses));
        }
        self.view.sample().await;
    }

    /// The host's own DNS servers may have changed.
    fn follow_system(&mut self, gateway: &Gateway) {
        if !self.config.dns64.as_ref().is_some_and(|dns64| dns64.upstreams.are_the_systems()) {
            return;
        }
        let text = resolv_conf();
        let before = self.resolv_conf.replace(text);
        if before.is_some() && before != self.resolv_conf {
            tracing::info!("DNS64: /etc/resolv.conf has changed");
            gateway.outdated.notify_one();
        }
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

    /// Ends it for the next process, which continues with its state.
    pub(super) fn leave(&mut self) -> Left {
        // Queries that wait may need the streams.
        let mut left = self.service.leave();
        if let Some(streams) = self.streams.take() {
            left.listeners.extend(streams.leave());
        }
        left
    }

    /// Ends it.
    pub(super) fn stop(&mut self) {
        drop(self.streams.take());
        self.service.stop();
    }
}

/// For each upstream, its place in the previous configuration, if it was there.
fn same_upstreams(old: &config::dns64::Dns64, new: &config::dns64::Dns64) -> Vec<Option<usize>> {
    let servers = |dns64: &config::dns64::Dns64| -> Vec<_> {
        let server =
            |it: &Upstream| (it.endpoint(), it.transport, it.name.clone(), it.path.clone(), it.ca.clone());
        dns64.upstreams.iter().map(server).collect()
    };
    same_places(&servers(old), &servers(new))
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
