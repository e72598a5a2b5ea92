//! The routes of the admin API. Requests have a bounded body and query; answers are pages of at most [`MAX_LIMIT`] rows.

use super::backend::Backend;
use super::edit::Named;
use super::error::AdminError;
use super::filter::Query;
use super::live::{LiveQuery, MAX_LIVE};
use super::metrics_route::metrics_route;
use super::pool_part::{NamedPart, PoolVerb};
use super::ranking::{DEFAULT_TOP, MAX_TOP, Ranking};
use crate::trace::Detail;
use crate::view::{Fault, Flush, Leaving, NewRemote, RouterAdvertisementRow, SixRdRow};
use axum::body::Body;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{DefaultBodyLimit, Extension, Query as UrlQuery, State};
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

/// Rows of a page when the request names no limit.
pub const DEFAULT_LIMIT: usize = 1_000;
/// The most rows of a page.
pub const MAX_LIMIT: usize = 10_000;
/// The longest request body in octets.
const MAX_BODY: usize = 16 * 1_024;

/// The shortest time within which a reload may have to be confirmed, in seconds.
const MIN_CONFIRM: u64 = 5;
/// The longest.
const MAX_CONFIRM: u64 = 86_400;

/// How to reload.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reload {
    /// Seconds within which it is to be confirmed.
    confirm: Option<u64>,
}

/// The user at the other end of the socket.
#[derive(Clone, Copy, Debug)]
pub struct Asker {
    /// Not a member of the group that may only look.
    pub may_change: bool,
}

/// The API over `backend`, to be served on a Unix socket. `/metrics` is answered here too.
pub fn router<B: Backend>(backend: Arc<B>) -> Router {
    Router::new()
        .route("/v1/status", get(status::<B>))
        .route("/v1/counters", get(counters::<B>))
        .route("/v1/drops", get(drops::<B>))
        .route("/v1/live", get(live::<B>))
        .route("/v1/pools", get(pools::<B>))
        .route("/v1/pools/blocks", get(pool_blocks::<B>))
        .route("/v1/pools/draining", get(draining::<B>).post(drain::<B>).delete(undrain::<B>))
        .route("/v1/pools/addresses", post(add_to_pool::<B>).delete(remove_from_pool::<B>))
        .route("/v1/sessions", get(sessions::<B>).delete(end_session::<B>))
        .route("/v1/bindings", get(bindings::<B>).post(make_binding::<B>).delete(end_binding::<B>))
        .route("/v1/subscribers", get(subscribers::<B>).delete(end_subscriber::<B>))
        .route("/v1/teredo", get(teredo::<B>))
        .route("/v1/leases", get(leases::<B>).delete(end_lease::<B>))
        .route("/v1/six-rd", get(six_rd::<B>))
        .route("/v1/router-advertisements", get(router_advertisements::<B>))
        .route("/v1/teredo-server", get(teredo_server::<B>))
        .route("/v1/pcp", get(pcp::<B>))
        .route("/v1/dns64", get(dns64::<B>))
        .route("/v1/dns64/cache", delete(flush::<B>))
        .route("/v1/remotes", post(set_remote::<B>))
        .route("/v1/fastpath", get(fast_path::<B>).delete(end_fast_path::<B>))
        .route("/v1/leave", post(leave::<B>))
        .route("/v1/config", get(config::<B>))
        .route("/v1/config.toml", get(config_text::<B>))
        .route("/v1/reload", post(reload::<B>).delete(roll_back::<B>))
        .route("/v1/reload/keep", post(keep_reload::<B>))
        .merge(metrics_route::<B>())
        .fallback(nothing_there)
        .method_not_allowed_fallback(wrong_method)
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .with_state(backend)
}

type Answer<T> = Result<Json<T>, AdminError>;

async fn status<B: Backend>(State(backend): State<Arc<B>>) -> Answer<impl Serialize> {
    backend.status().await.map(Json)
}

async fn counters<B: Backend>(State(backend): State<Arc<B>>) -> Answer<impl Serialize> {
    backend.counters().await.map(Json)
}

async fn drops<B: Backend>(
    State(backend): State<Arc<B>>,
    asker: Option<Extension<Asker>>,
) -> Answer<impl Serialize> {
    let detail = if is_member(asker) { Detail::Prefixes } else { Detail::Whole };
    backend.drops(detail).await.map(Json)
}

fn is_member(asker: Option<Extension<Asker>>) -> bool {
    asker.is_some_and(|Extension(asker)| !asker.may_change)
}

/// One JSON object in each line, as packets pass.
async fn live<B: Backend>(
    State(backend): State<Arc<B>>,
    asker: Option<Extension<Asker>>,
    asked: Result<UrlQuery<LiveQuery>, QueryRejection>,
) -> Result<Response, AdminError> {
    if is_member(asker) {
        return Err(AdminError::NotPermitted);
    }
    let UrlQuery(asked) = asked.map_err(|rejection| AdminError::BadRequest(rejection.body_text()))?;
    let filter = asked.filter().map_err(AdminError::BadRequest)?;
    let lasts = Duration::from_secs(asked.seconds.unwrap_or(MAX_LIVE).clamp(1, MAX_LIVE));
    let rows = backend.live(filter, lasts).await?;
    let end = tokio::time::Instant::now() + lasts;
    let lines = futures_util::stream::unfold(rows, move |mut rows| async move {
        let row = tokio::time::timeout_at(end, rows.recv()).await.ok()??;
        let line = serde_json::to_string(&row).unwrap_or_default() + "\n";
        Some((Ok::<_, std::convert::Infallible>(line), rows))
    });
    Ok(Body::from_stream(lines).into_response())
}

async fn pools<B: Backend>(State(backend): State<Arc<B>>) -> Answer<impl Serialize> {
    backend.pools().await.map(Json)
}

async fn pool_blocks<B: Backend>(State(backend): State<Arc<B>>) -> Answer<impl Serialize> {
    backend.pool_blocks().await.map(Json)
}

async fn draining<B: Backend>(State(backend): State<Arc<B>>) -> Answer<impl Serialize> {
    backend.draining().await.map(Json)
}

type WrittenPart = Result<Json<NamedPart>, JsonRejection>;
type QueriedPart = Result<UrlQuery<NamedPart>, QueryRejection>;

async fn change_pool<B: Backend>(
    backend: &B,
    verb: PoolVerb,
    part: Result<NamedPart, String>,
) -> Result<StatusCode, AdminError> {
    let part = part.and_then(|named| named.part()).map_err(AdminError::BadRequest)?;
    backend.change_pool(verb, part).await.map(|()| StatusCode::NO_CONTENT)
}

fn written(part: WrittenPart) -> Result<NamedPart, String> {
    part.map(|Json(named)| named).map_err(|rejection| rejection.body_text())
}

fn queried(part: QueriedPart) -> Result<NamedPart, String> {
    part.map(|UrlQuery(named)| named).map_err(|rejection| rejection.body_text())
}

async fn drain<B: Backend>(
    State(backend): State<Arc<B>>,
    part: WrittenPart,
) -> Result<StatusCode, AdminError> {
    change_pool(&*backend, PoolVerb::Drain, written(part)).await
}

async fn undrain<B: Backend>(
    State(backend): State<Arc<B>>,
    part: QueriedPart,
) -> Result<StatusCode, AdminError> {
    change_pool(&*backend, PoolVerb::Undrain, queried(part)).await
}

async fn add_to_pool<B: Backend>(
    State(backend): State<Arc<B>>,
    part: WrittenPart,
) -> Result<StatusCode, AdminError> {
    change_pool(&*backend, PoolVerb::Add, written(part)).await
}

async fn remove_from_pool<B: Backend>(
    State(backend): State<Arc<B>>,
    part: QueriedPart,
) -> Result<StatusCode, AdminError> {
    change_pool(&*backend, PoolVerb::Remove, queried(part)).await
}

async fn sessions<B: Backend>(State(backend): State<Arc<B>>, query: Written) -> Answer<impl Serialize> {
    backend.sessions(limited(query)?).await.map(Json)
}

async fn bindings<B: Backend>(State(backend): State<Arc<B>>, query: Written) -> Answer<impl Serialize> {
    backend.bindings(limited(query)?).await.map(Json)
}

type Ranked = Result<UrlQuery<Ranking>, QueryRejection>;

fn ranked(asked: Ranked) -> Result<Ranking, AdminError> {
    let UrlQuery(ranking) = asked.map_err(|rejection| AdminError::BadRequest(rejection.body_text()))?;
    let top = ranking.top.unwrap_or(DEFAULT_TOP);
    if !(1..=MAX_TOP).contains(&top) {
        return Err(AdminError::BadRequest(format!("top = {top} is out of range; write 1 to {MAX_TOP}")));
    }
    ranking.prefix().map_err(|error| AdminError::BadRequest(error.to_string()))?;
    Ok(Ranking { top: Some(top), ..ranking })
}

async fn subscribers<B: Backend>(State(backend): State<Arc<B>>, asked: Ranked) -> Answer<impl Serialize> {
    backend.subscribers(ranked(asked)?).await.map(Json)
}

async fn end_subscriber<B: Backend>(State(backend): State<Arc<B>>, asked: Ranked) -> Answer<impl Serialize> {
    let ranking = ranked(asked)?;
    let prefix = ranking.prefix().map_err(|error| AdminError::BadRequest(error.to_string()))?;
    let which = "inside is missing; write the subscriber's prefix or address";
    let prefix = prefix.ok_or_else(|| AdminError::BadRequest(which.into()))?;
    backend.end_subscriber(prefix, ranking.mechanism).await.map(Json)
}

async fn make_binding<B: Backend>(
    State(backend): State<Arc<B>>,
    named: Result<Json<Named>, JsonRejection>,
) -> Result<StatusCode, AdminError> {
    let Json(named) = named.map_err(|rejection| AdminError::BadRequest(rejection.body_text()))?;
    backend.make_binding(named).await.map(|()| StatusCode::CREATED)
}

async fn set_remote<B: Backend>(
    State(backend): State<Arc<B>>,
    remote: Result<Json<NewRemote>, JsonRejection>,
) -> Result<StatusCode, AdminError> {
    let Json(remote) = remote.map_err(|rejection| AdminError::BadRequest(rejection.body_text()))?;
    backend.set_remote(remote).await.map(|()| StatusCode::NO_CONTENT)
}

async fn end_binding<B: Backend>(
    State(backend): State<Arc<B>>,
    named: Which,
) -> Result<StatusCode, AdminError> {
    backend.end_binding(which(named)?).await.map(|()| StatusCode::NO_CONTENT)
}

async fn end_session<B: Backend>(
    State(backend): State<Arc<B>>,
    named: Which,
) -> Result<StatusCode, AdminError> {
    backend.end_session(which(named)?).await.map(|()| StatusCode::NO_CONTENT)
}

type Which = Result<UrlQuery<Named>, QueryRejection>;

fn which(named: Which) -> Result<Named, AdminError> {
    named.map(|UrlQuery(named)| named).map_err(|rejection| AdminError::BadRequest(rejection.body_text()))
}

async fn leases<B: Backend>(State(backend): State<Arc<B>>) -> Answer<impl Serialize> {
    backend.leases().await.map(Json)
}

async fn teredo<B: Backend>(State(backend): State<Arc<B>>) -> Answer<impl Serialize> {
    backend.teredo().await.map(Json)
}

/// Which lease.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NamedLease {
    /// Its address.
    ipv4: Ipv4Addr,
}

async fn end_lease<B: Backend>(
    State(backend): State<Arc<B>>,
    named: Result<UrlQuery<NamedLease>, QueryRejection>,
) -> Result<StatusCode, AdminError> {
    let UrlQuery(named) = named.map_err(|rejection| AdminError::BadRequest(rejection.body_text()))?;
    backend.end_lease(named.ipv4).await.map(|()| StatusCode::NO_CONTENT)
}

async fn six_rd<B: Backend>(State(backend): State<Arc<B>>) -> Json<Vec<SixRdRow>> {
    Json(backend.six_rd())
}

async fn router_advertisements<B: Backend>(
    State(backend): State<Arc<B>>,
) -> Json<Vec<RouterAdvertisementRow>> {
    Json(backend.router_advertisements())
}

async fn dns64<B: Backend>(State(backend): State<Arc<B>>) -> Answer<impl Serialize> {
    backend.dns64().await.map(Json)
}

async fn pcp<B: Backend>(State(backend): State<Arc<B>>) -> Json<impl Serialize> {
    Json(backend.pcp())
}

async fn teredo_server<B: Backend>(State(backend): State<Arc<B>>) -> Json<impl Serialize> {
    Json(backend.teredo_server())
}

async fn flush<B: Backend>(
    State(backend): State<Arc<B>>,
    what: Result<UrlQuery<Flush>, QueryRejection>,
) -> Answer<impl Serialize> {
    let UrlQuery(what) = what.map_err(|rejection| AdminError::BadRequest(rejection.body_text()))?;
    backend.flush(what).await.map(Json)
}

async fn fast_path<B: Backend>(State(backend): State<Arc<B>>) -> Answer<impl Serialize> {
    backend.fast_path().await.map(Json)
}

async fn end_fast_path<B: Backend>(State(backend): State<Arc<B>>) -> Answer<impl Serialize> {
    backend.end_fast_path().await.map(Json)
}

async fn leave<B: Backend>(State(backend): State<Arc<B>>) -> Answer<Leaving> {
    backend.leave().await.map(|()| Json(Leaving { process: std::process::id() }))
}

async fn reload<B: Backend>(
    State(backend): State<Arc<B>>,
    how: Result<UrlQuery<Reload>, QueryRejection>,
) -> Answer<()> {
    let UrlQuery(how) = how.map_err(|rejection| AdminError::BadRequest(rejection.body_text()))?;
    if how.confirm.is_some_and(|seconds| !(MIN_CONFIRM..=MAX_CONFIRM).contains(&seconds)) {
        return Err(AdminError::BadRequest(format!(
            "confirm is not between {MIN_CONFIRM} and {MAX_CONFIRM} seconds"
        )));
    }
    backend.reload(how.confirm.map(Duration::from_secs)).await.map(Json)
}

async fn keep_reload<B: Backend>(State(backend): State<Arc<B>>) -> Answer<()> {
    backend.keep_reload().await.map(Json)
}

async fn roll_back<B: Backend>(State(backend): State<Arc<B>>) -> Answer<()> {
    backend.roll_back().await.map(Json)
}

async fn config<B: Backend>(State(backend): State<Arc<B>>) -> Json<serde_json::Value> {
    Json(backend.config())
}

async fn config_text<B: Backend>(State(backend): State<Arc<B>>) -> String {
    backend.config_text()
}

type Written = Result<UrlQuery<Query>, QueryRejection>;

/// Validates the query and sets its limit.
fn limited(query: Written) -> Result<Query, AdminError> {
    let UrlQuery(mut query) = query.map_err(|rejection| AdminError::BadRequest(rejection.body_text()))?;
    query.filter().map_err(|error| AdminError::BadRequest(error.to_string()))?;
    let limit = query.limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(AdminError::BadRequest(format!("limit = {limit} is not between 1 and {MAX_LIMIT}")));
    }
    query.limit = Some(limit);
    Ok(query)
}

async fn nothing_there(uri: Uri) -> AdminError {
    AdminError::NotFound(format!(
        "unknown path {}; the paths are /v1/status, /v1/counters, /v1/drops, /v1/live, /v1/pools, /v1/pools/blocks, /v1/pools/draining, /v1/pools/addresses, /v1/sessions, /v1/bindings, /v1/subscribers, /v1/leases, /v1/teredo, /v1/teredo-server, /v1/pcp, /v1/six-rd, /v1/router-advertisements, /v1/dns64, /v1/dns64/cache, /v1/remotes, /v1/fastpath, /v1/leave, /v1/reload, /v1/reload/keep, /v1/config and /v1/config.toml",
        uri.path()
    ))
}

async fn wrong_method(method: Method, uri: Uri) -> Response {
    let fault = Fault { error: format!("{} does not support {method}", uri.path()) };
    (StatusCode::METHOD_NOT_ALLOWED, Json(fault)).into_response()
}
