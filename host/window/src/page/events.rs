//! The stream of events that tells the page to load itself again. It says that something has changed, and not what.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    extract::State,
    response::{
        IntoResponse, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use futures_util::stream::unfold;
use http::StatusCode;
use tokio::time::{Instant, sleep, timeout_at};

use super::shared::Shared;

/// The least time between two events.
const PACE: Duration = Duration::from_millis(250);
/// How long a stream is open. The browser then opens another.
const LIFETIME: Duration = Duration::from_secs(15 * 60);
/// How often a stream without events shows that it is open.
const KEEP_ALIVE: Duration = Duration::from_secs(20);

/// Answers with the stream. The first event comes at once, since something may have changed since the page was written.
pub async fn events(State(shared): State<Arc<Shared>>) -> Response {
    let Ok(place) = Arc::clone(&shared.streams).try_acquire_owned() else {
        return (StatusCode::SERVICE_UNAVAILABLE, "too many pages are open; close one, or reload this one by hand")
            .into_response();
    };
    let mut changes = shared.viewer.changes();
    changes.mark_changed();
    let end = Instant::now() + LIFETIME;
    let events = unfold((changes, place, true), move |(mut changes, place, is_first)| async move {
        if !is_first {
            sleep(PACE).await;
        }
        // An error: the time is up, or the viewer is gone.
        timeout_at(end, changes.changed()).await.ok()?.ok()?;
        // A browser drops an event without data.
        let event = Event::default().event("changed").data("now");
        Some((Ok::<_, Infallible>(event), (changes, place, false)))
    });
    Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response()
}
