//! Why a request to the admin API was not answered.

use crate::view::Fault;
use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use std::fmt;

/// Why a request was not answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdminError {
    /// The request is wrong: the fault, and the remedy.
    BadRequest(String),
    /// The named object does not exist.
    NotFound(String),
    /// It conflicts with the current state.
    Conflict(String),
    /// A worker did not answer in time.
    Busy(String),
    /// The asker may only look.
    NotPermitted,
}

impl fmt::Display for AdminError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadRequest(what) | Self::NotFound(what) | Self::Conflict(what) | Self::Busy(what) => {
                f.write_str(what)
            }
            Self::NotPermitted => f.write_str(
                "members of gateway.admin_group may look and not change anything; run the command as root",
            ),
        }
    }
}

impl std::error::Error for AdminError {}

impl IntoResponse for AdminError {
    fn into_response(self) -> Response {
        let status = match &self {
            Self::BadRequest(_) => StatusCode::BAD_REQUEST,
            Self::NotFound(_) => StatusCode::NOT_FOUND,
            Self::Conflict(_) => StatusCode::CONFLICT,
            Self::Busy(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::NotPermitted => StatusCode::FORBIDDEN,
        };
        (status, Json(Fault { error: self.to_string() })).into_response()
    }
}
