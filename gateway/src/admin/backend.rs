//! The admin API's interface to the gateway: a trait, so that the API can be tested without a gateway.

use super::edit::Named;
use super::error::AdminError;
use super::filter::Query;
use super::live::LiveFilter;
use super::pool_part::{PoolPart, PoolVerb};
use super::ranking::Ranking;
use crate::trace::Detail;
use crate::view::{
    BindingRow, CounterRow, Dns64Row, DrainingRow, DropRow, Ended, FastPathRow, Flush, Flushed, LeaseRow,
    LiveRow, NewRemote, Page, PcpRow, PoolBlocksRow, PoolRow, RouterAdvertisementRow, SessionRow, SixRdRow,
    Status, Subscribers, TeredoRow, TeredoServerRow,
};
use sixway_wire::Prefix6;
use std::future::Future;
use std::net::Ipv4Addr;
use std::time::Duration;
use tokio::sync::mpsc::Receiver;

/// The running gateway, as the admin API sees it.
pub trait Backend: Send + Sync + 'static {
    /// The gateway in a few numbers.
    fn status(&self) -> impl Future<Output = Result<Status, AdminError>> + Send;
    /// Every counter.
    fn counters(&self) -> impl Future<Output = Result<Vec<CounterRow>, AdminError>> + Send;
    /// Leases of concentrators and of this host, as many as a page has.
    fn leases(&self) -> impl Future<Output = Result<Vec<LeaseRow>, AdminError>> + Send;
    /// Teredo's relays with their peers, as many as a page has.
    fn teredo(&self) -> impl Future<Output = Result<Vec<TeredoRow>, AdminError>> + Send;
    /// Ends the lease of an address.
    fn end_lease(&self, ipv4: Ipv4Addr) -> impl Future<Output = Result<(), AdminError>> + Send;
    /// Every reason for drops.
    fn drops(&self, detail: Detail) -> impl Future<Output = Result<Vec<DropRow>, AdminError>> + Send;
    /// Packets as they pass the workers, for this time; an earlier live trace ends.
    fn live(
        &self,
        filter: LiveFilter,
        lasts: Duration,
    ) -> impl Future<Output = Result<Receiver<LiveRow>, AdminError>> + Send;
    /// How full the pools of ports are.
    fn pools(&self) -> impl Future<Output = Result<Vec<PoolRow>, AdminError>> + Send;
    /// How many port blocks the pools have, where subscribers have blocks.
    fn pool_blocks(&self) -> impl Future<Output = Result<Vec<PoolBlocksRow>, AdminError>> + Send;
    /// The remaining use of addresses of pools that are being drained.
    fn draining(&self) -> impl Future<Output = Result<Vec<DrainingRow>, AdminError>> + Send;
    /// Changes a part of a pool.
    fn change_pool(
        &self,
        verb: PoolVerb,
        part: PoolPart,
    ) -> impl Future<Output = Result<(), AdminError>> + Send;
    /// Sessions that `query` admits; its limit is set.
    fn sessions(&self, query: Query) -> impl Future<Output = Result<Page<SessionRow>, AdminError>> + Send;
    /// Bindings that `query` admits; its limit is set.
    fn bindings(&self, query: Query) -> impl Future<Output = Result<Page<BindingRow>, AdminError>> + Send;
    /// The first subscribers.
    fn subscribers(&self, ranking: Ranking) -> impl Future<Output = Result<Subscribers, AdminError>> + Send;
    /// Ends the dynamic bindings of all hosts in a prefix, with their sessions.
    fn end_subscriber(
        &self,
        inside: Prefix6,
        mechanism: Option<String>,
    ) -> impl Future<Output = Result<Ended, AdminError>> + Send;
    /// Makes a static binding.
    fn make_binding(&self, named: Named) -> impl Future<Output = Result<(), AdminError>> + Send;
    /// Ends the binding of an outside endpoint.
    fn end_binding(&self, named: Named) -> impl Future<Output = Result<(), AdminError>> + Send;
    /// Ends the session of an inside and a remote endpoint.
    fn end_session(&self, named: Named) -> impl Future<Output = Result<(), AdminError>> + Send;
    /// The 6rd domains.
    fn six_rd(&self) -> Vec<SixRdRow>;
    /// The router advertisements.
    fn router_advertisements(&self) -> Vec<RouterAdvertisementRow>;
    /// The remote of a tunnel is elsewhere.
    fn set_remote(&self, remote: NewRemote) -> impl Future<Output = Result<(), AdminError>> + Send;
    /// DNS64, if configured.
    fn dns64(&self) -> impl Future<Output = Result<Option<Dns64Row>, AdminError>> + Send;
    /// The PCP server, if configured.
    fn pcp(&self) -> Option<PcpRow>;
    /// The Teredo server, if configured.
    fn teredo_server(&self) -> Option<TeredoServerRow>;
    /// Answers in the DNS64's cache are to be forgotten.
    fn flush(&self, flush: Flush) -> impl Future<Output = Result<Flushed, AdminError>> + Send;
    /// The fast path, if configured.
    fn fast_path(&self) -> impl Future<Output = Result<Option<FastPathRow>, AdminError>> + Send;
    /// Removes the fast path; returns whether there was one.
    fn end_fast_path(&self) -> impl Future<Output = Result<bool, AdminError>> + Send;
    /// This process is to make way for another one of the gateway.
    fn leave(&self) -> impl Future<Output = Result<(), AdminError>> + Send;
    /// The configuration is to be read again; with a time, the previous one returns unless the new one is confirmed within that.
    fn reload(&self, confirm: Option<Duration>) -> impl Future<Output = Result<(), AdminError>> + Send;
    /// The reloaded configuration is to be kept.
    fn keep_reload(&self) -> impl Future<Output = Result<(), AdminError>> + Send;
    /// The previous configuration is to return.
    fn roll_back(&self) -> impl Future<Output = Result<(), AdminError>> + Send;
    /// The configuration in force.
    fn config(&self) -> serde_json::Value;
    /// The same as a configuration file.
    fn config_text(&self) -> String;
    /// The metrics as Prometheus reads them.
    fn metrics(&self) -> impl Future<Output = Result<String, AdminError>> + Send;
}
