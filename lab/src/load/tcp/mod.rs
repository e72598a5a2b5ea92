//! Loads over TCP, and their servers; and transactions, one kind of which is over UDP.

mod bulk;
mod http;
mod server;
mod transaction;
mod turns;

pub use bulk::TcpBulk;
pub use http::{HttpFetch, HttpServer};
pub use transaction::{TransactionKind, Transactions};
pub use turns::TRANSACTION_LIMIT;
