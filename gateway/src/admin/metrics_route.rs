//! `/metrics`, on the admin socket and at the address of metrics.

use super::backend::Backend;
use super::error::AdminError;
use crate::metrics::Format;
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use std::sync::Arc;

/// The one route of the metrics endpoint.
pub(crate) fn metrics_route<B: Backend>() -> Router<Arc<B>> {
    Router::new().route("/metrics", get(metrics::<B>))
}

async fn metrics<B: Backend>(
    State(backend): State<Arc<B>>,
    headers: HeaderMap,
) -> Result<Response, AdminError> {
    let format = Format::accepted(headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()));
    let text = backend.metrics().await?;
    Ok(([(header::CONTENT_TYPE, format.content_type())], format.write(&text).into_owned()).into_response())
}
