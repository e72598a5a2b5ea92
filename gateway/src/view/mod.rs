//! The state of a running gateway as rows: the admin API returns them, `sixway show` prints them and metrics export them.

mod dns64;
mod dns64_rows;
mod log_rows;
mod pcp_rows;
mod problem_kind;
mod problem_rows;
mod rows;
mod teredo_rows;
mod teredo_server_rows;

pub use dns64::{Dns64Facts, dns64_row};
pub use dns64_rows::{AnchorRow, CountedRow, Dns64Row, Flush, Flushed, OutcomeRow, UpstreamRow};
pub use log_rows::SinkRow;
pub use pcp_rows::{PcpMappingRow, PcpRow};
pub use problem_kind::ProblemKind;
pub use problem_rows::{
    AddressBlocksRow, DrainingRow, PoolBlocksRow, PoolRow, PoolShareRow, ProblemRow, Severity,
};
pub use rows::{
    AdvertisedRow, BindingRow, CarriedRow, CounterRow, Device, DropRow, Ended, FastPathRow, FastPathShare,
    Fault, HostRow, LeaseRow, Leaving, LiveRow, MappingsRow, MechanismRow, NewRemote, Page, PassedRow, Rates,
    ReloadRow, RestoredRow, RouterAdvertisementRow, SessionRow, SixRdRow, Status, SubscriberRow, Subscribers,
};
pub use teredo_rows::{TeredoClientRow, TeredoPeerRow, TeredoRow};
pub use teredo_server_rows::TeredoServerRow;
