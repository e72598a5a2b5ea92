//! The admin API: HTTP and JSON over a Unix socket that only its owner may open.
//!
//! | Request | Answer |
//! |---|---|
//! | `GET /v1/status` | [`Status`](crate::view::Status) |
//! | `GET /v1/counters` | [`CounterRow`](crate::view::CounterRow)s |
//! | `GET /v1/drops` | [`DropRow`](crate::view::DropRow)s |
//! | `GET /v1/live?from=&to=&protocol=&port=&drops=&seconds=` | a [`LiveRow`](crate::view::LiveRow) in each line, as packets pass |
//! | `GET /v1/sessions?inside=&outside=&remote=&port=&protocol=&limit=&cursor=` | a [`Page`](crate::view::Page) of [`SessionRow`](crate::view::SessionRow)s |
//! | `GET /v1/bindings?…` | a [`Page`](crate::view::Page) of [`BindingRow`](crate::view::BindingRow)s |
//! | `GET /v1/six-rd` | [`SixRdRow`](crate::view::SixRdRow)s |
//! | `GET /v1/router-advertisements` | [`RouterAdvertisementRow`](crate::view::RouterAdvertisementRow)s |
//! | `GET /v1/pcp` | a [`PcpRow`](crate::view::PcpRow), or `null` without a PCP server |
//! | `GET /v1/teredo-server` | a [`TeredoServerRow`](crate::view::TeredoServerRow), or `null` without a Teredo server |
//! | `GET /v1/dns64` | a [`Dns64Row`](crate::view::Dns64Row), or `null` without DNS64 |
//! | `DELETE /v1/dns64/cache?name=` or `?all=true` | removes answers from the cache: [`Flushed`](crate::view::Flushed) |
//! | `GET /v1/config` | the configuration in force |
//! | `GET /v1/config.toml` | the same as a configuration file |
//! | `POST /v1/reload`, or `?confirm=SECONDS` | reads the configuration again |
//! | `POST /v1/reload/keep` | confirms the reload |
//! | `DELETE /v1/reload` | returns to the configuration before it |
//! | `POST /v1/remotes` with a [`NewRemote`](crate::view::NewRemote) | sets the remote of a tunnel until the DNS returns a new one |
//! | `POST /v1/bindings` with a [`Named`] | creates a static binding |
//! | `DELETE /v1/bindings?protocol=&outside=` | ends a binding and its sessions |
//! | `DELETE /v1/sessions?protocol=&inside=&remote=` | ends a session |
//!
//! Errors have a 4xx or 5xx status and a [`Fault`](crate::view::Fault).

mod backend;
mod client;
mod edit;
mod error;
mod filter;
mod live;
mod metrics_route;
mod pool_part;
mod ranking;
mod server;

pub use backend::Backend;
pub use client::{Client, ClientError};
pub use edit::{Edit, Named};
pub use error::AdminError;
pub(crate) use filter::protocol_number;
pub use filter::{Filter, FilterError, Query};
pub use live::{LiveFilter, MAX_LIVE};
pub(crate) use metrics_route::metrics_route;
pub use pool_part::{NamedPart, PoolPart, PoolVerb};
pub use ranking::{By, DEFAULT_TOP, MAX_TOP, Ranking};
pub use server::{Asker, DEFAULT_LIMIT, MAX_LIMIT, router};
