//! `/metrics`, which is answered on the admin socket and on the address of metrics.

use super::backend::Backend;
use super::error::AdminError;
use crate::metrics::CONTENT_TYPE;
use axum::Router;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use std::sync::Arc;

/// The one route of the metrics endpoint.
pub(crate) fn metrics_route<B: Backend>() -> Router<Arc<B>> {
    Router::new().route("/metrics", get(metrics::<B>))
}

async fn metrics<B: Backend>(State(backend): State<Arc<B>>) -> Result<Response, AdminError> {
    let text = backend.metrics().await?;
    Ok(([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response())
}
