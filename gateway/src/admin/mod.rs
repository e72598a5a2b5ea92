//! The admin API: HTTP and JSON over a Unix socket that only its owner may open.
//!
//! | Request | Answer |
//! |---|---|
//! | `GET /v1/status` | [`Status`] |
//! | `GET /v1/counters` | [`CounterRow`]s |
//! | `GET /v1/drops` | [`DropRow`]s |
//! | `GET /v1/sessions?inside=&outside=&remote=&port=&protocol=&limit=&cursor=` | a [`Page`] of [`SessionRow`]s |
//! | `GET /v1/bindings?…` | a [`Page`] of [`BindingRow`]s |
//! | `GET /v1/six-rd` | [`SixRdRow`]s |
//! | `GET /v1/router-advertisements` | [`RouterAdvertisementRow`]s |
//! | `GET /v1/dns64` | a [`Dns64Row`], or `null` where there is none |
//! | `DELETE /v1/dns64/cache?name=` or `?all=true` | answers are forgotten: [`Flushed`] |
//! | `GET /v1/config` | the configuration in force |
//! | `POST /v1/remotes` with a [`NewRemote`] | the remote of a tunnel is there, until the DNS says something new |
//! | `POST /v1/bindings` with a [`Named`] | a static binding is made |
//! | `DELETE /v1/bindings?protocol=&outside=` | a binding ends, with its sessions |
//! | `DELETE /v1/sessions?protocol=&inside=&remote=` | a session ends |
//!
//! What cannot be answered has a 4xx or 5xx status and a [`Fault`].

mod backend;
mod client;
mod dns64_rows;
mod edit;
mod filter;
mod rows;
mod server;

pub use backend::{AdminError, Backend};
pub use client::{Client, ClientError};
pub use dns64_rows::{AnchorRow, CountedRow, Dns64Row, Flush, Flushed, OutcomeRow, UpstreamRow};
pub use edit::{Edit, Named};
pub(crate) use filter::protocol_number;
pub use filter::{Filter, FilterError, Query};
pub use rows::{
    AdvertisedRow, BindingRow, CarriedRow, CounterRow, Device, DropRow, FastPathRow, FastPathShare, Fault,
    Left, MechanismRow, NewRemote, Page, PassedRow, Rates, RouterAdvertisementRow, SessionRow, SixRdRow,
    Status,
};
pub use server::{DEFAULT_LIMIT, MAX_LIMIT, router};
