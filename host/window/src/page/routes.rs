//! What is at which path. Forms are sent with POST and answered with a redirect, so that reloading a page repeats nothing.

use std::{collections::HashMap, sync::Arc, time::Instant};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{Request, State},
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use http::{HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use maud::Markup;

use super::{
    door::{HEADERS, LINK_PATH, Unwelcome},
    events::events,
    layout::{Frame, Outcome, Tab, sentence},
    machine, now, plugins,
    record::{self, Recorded},
    refused,
    shared::Shared,
    waiting,
};
use crate::actions::Lines;

/// The most bytes of a form.
const MAX_FORM_BYTES: usize = 64 << 10;
const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");
const ICON: &str = include_str!("icon.svg");

/// The fields of a form or of a query. Of several with the same name, the last one counts.
type Fields = HashMap<String, String>;

/// Returns the page. Every request passes the door first, and every answer has its headers.
pub fn routes(shared: &Arc<Shared>) -> Router {
    let mut router = Router::new();
    for tab in Tab::ALL {
        let view = move |State(shared): State<Arc<Shared>>, uri: Uri| view(shared, tab, uri);
        router = router.route(tab.named().1, get(view));
    }
    router
        .route("/events", get(events))
        .route("/style.css", get(|| async { file("text/css; charset=utf-8", STYLE) }))
        .route("/script.js", get(|| async { file("text/javascript; charset=utf-8", SCRIPT) }))
        .route("/icon.svg", get(|| async { file("image/svg+xml", ICON) }))
        .route("/answer", post(answer))
        .route("/allow", post(|State(shared), request: Request| grant(shared, request, true)))
        .route("/take-back", post(|State(shared), request: Request| grant(shared, request, false)))
        .route("/undo", post(undo))
        .fallback(|| async { said(StatusCode::NOT_FOUND, "There is no such page.") })
        .method_not_allowed_fallback(|| async {
            said(StatusCode::METHOD_NOT_ALLOWED, "This address is not used in this way.")
        })
        .layer(from_fn_with_state(Arc::clone(shared), guard))
        .with_state(Arc::clone(shared))
}

/// Lets a request in, or refuses it, and adds the headers.
async fn guard(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let mut response = match let_in(&shared, request) {
        Ok(Entry::Pass(request)) => next.run(*request).await,
        Ok(Entry::Answered(response)) => *response,
        Err(unwelcome) => said(StatusCode::FORBIDDEN, &unwelcome.to_string()),
    };
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

enum Entry {
    Pass(Box<Request>),
    Answered(Box<Response>),
}

fn let_in(shared: &Shared, request: Request) -> Result<Entry, Unwelcome> {
    let (parts, body) = request.into_parts();
    shared.door.check_way(&parts)?;
    let has_cookie = shared.door.check_cookie(&parts.headers);
    match parts.uri.path().strip_prefix(LINK_PATH) {
        Some(secret) if parts.method == Method::GET => {
            let entered = shared.door.enter(secret, Instant::now());
            // A link that is opened a second time in the same browser leads to the page all the same.
            if has_cookie.is_err() {
                entered?;
            }
            Ok(Entry::Answered(Box::new(entered_page(shared, &parts.headers))))
        }
        _ => has_cookie.map(|()| Entry::Pass(Box::new(Request::from_parts(parts, body)))),
    }
}

/// Answers a link that was opened: gives the cookie, and leads to the page.
fn entered_page(shared: &Shared, headers: &http::HeaderMap) -> Response {
    let site = headers.get(HeaderName::from_static("sec-fetch-site")).map(HeaderValue::as_bytes);
    // After a link on another page, the browser would keep the cookie back from a redirect, but not from the next page.
    let mut response = if site.is_some_and(|site| site != b"none" && site != b"same-origin") {
        let mut response = sentence("The page opens now; if it does not, reload it at / of this address.")
            .into_string()
            .into_response();
        response.headers_mut().insert(header::REFRESH, HeaderValue::from_static("0; url=/"));
        response.headers_mut().insert(header::CONTENT_TYPE, HTML);
        response
    } else {
        redirect("/")
    };
    if let Some(cookie) = shared.door.set_cookie() {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}

/// Shows a view.
async fn view(shared: Arc<Shared>, tab: Tab, uri: Uri) -> Response {
    let fields = fields(uri.query().unwrap_or_default().as_bytes());
    let write = {
        let shared = Arc::clone(&shared);
        move || write(&shared, tab, &fields)
    };
    match shared.blocking.spawn_blocking(write).await {
        Ok(page) => html(StatusCode::OK, page),
        Err(_) => said(StatusCode::INTERNAL_SERVER_ERROR, "The page could not be written."),
    }
}

fn write(shared: &Shared, tab: Tab, fields: &Fields) -> Markup {
    let outcome = fields.get("said").and_then(|number| shared.outcome(number.parse().ok()?));
    let viewer = &shared.viewer;
    let frame = viewer.read(|view| Frame::new(tab, view, outcome));
    let mut is_still = false;
    let contents = match tab {
        Tab::Now => viewer.read(now::contents),
        Tab::Refused => {
            // The config files are read after the view is released.
            let groups = viewer.read(refused::groups);
            let standings = refused::standings(&groups, &*shared.actions);
            refused::contents(&groups, &standings)
        }
        Tab::Waiting => viewer.read(waiting::contents),
        Tab::Plugins => viewer.read(plugins::contents),
        Tab::Record => {
            let configs = viewer.read(record::configs);
            let (log, search) = (fields.get("log"), fields.get("search"));
            let search = search.map_or("", String::as_str);
            let recorded = Recorded::read(&*shared.actions, configs, log.map(String::as_str), search);
            is_still = recorded.is_still();
            recorded.contents()
        }
        Tab::Machine => viewer.read(machine::contents),
    };
    frame.page(is_still, &contents)
}

/// Answers a question.
async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let fields = match form(request).await {
        Ok(fields) => fields,
        Err(response) => return response,
    };
    let (process, word) = (text(&fields, "process"), text(&fields, "word"));
    let answered = text(&fields, "question").parse().map_err(|_| "This form has no question.".to_owned());
    let answered =
        answered.and_then(|question| shared.viewer.answer(process, question, word).map_err(|error| error.to_string()));
    let lines = answered.map(|()| vec!["Your answer was sent.".to_owned()]).map_err(|error| vec![error]);
    done(&shared, Tab::Waiting, lines)
}

/// Writes a grant into a config, or removes it. Only what a plugin was refused can be granted here, and only in the config of its process.
async fn grant(shared: Arc<Shared>, request: Request, allow: bool) -> Response {
    let fields = match form(request).await {
        Ok(fields) => fields,
        Err(response) => return response,
    };
    let (process, plugin, grant) = (text(&fields, "process"), text(&fields, "plugin"), text(&fields, "grant"));
    // The one that the person saw: a process could name another one meanwhile.
    let config = text(&fields, "config");
    let groups = shared.viewer.read(refused::groups);
    let known = groups.into_iter().find(|group| {
        group.process == process
            && group.plugin == plugin
            && group.refusal.grant.as_deref() == Some(grant)
            && group.config.as_deref() == Some(config)
    });
    let Some((config, group)) = known.and_then(|group| Some((group.config.clone()?, group))) else {
        return done(
            &shared,
            Tab::Refused,
            Err(vec!["This refusal is not remembered any more, so nothing was written.".into()]),
        );
    };
    let grant = grant.to_owned();
    let act = {
        let shared = Arc::clone(&shared);
        move || {
            let config = std::path::Path::new(&config);
            match allow {
                true => shared.actions.allow(config, &group.plugin, &grant),
                false => shared.actions.take_back(config, &group.plugin, &grant),
            }
        }
    };
    act_and_tell(&shared, Tab::Refused, act).await
}

/// Takes back what a call has changed.
async fn undo(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let fields = match form(request).await {
        Ok(fields) => fields,
        Err(response) => return response,
    };
    let id = text(&fields, "id").to_owned();
    let act = {
        let shared = Arc::clone(&shared);
        move || shared.actions.undo(&id)
    };
    act_and_tell(&shared, Tab::Record, act).await
}

async fn act_and_tell(
    shared: &Shared,
    tab: Tab,
    act: impl FnOnce() -> Result<Lines, Lines> + Send + 'static,
) -> Response {
    let lines = shared.blocking.spawn_blocking(act).await;
    done(shared, tab, lines.unwrap_or_else(|_| Err(vec!["This failed; the terminal may say why.".into()])))
}

/// Leads back to a view, which says what was done.
fn done(shared: &Shared, tab: Tab, lines: Result<Lines, Lines>) -> Response {
    let number = shared.remember(Outcome::from(lines));
    redirect(&format!("{}?said={number}", tab.named().1))
}

/// Reads the fields of a form.
async fn form(request: Request) -> Result<Fields, Response> {
    let body = to_bytes(request.into_body(), MAX_FORM_BYTES).await;
    let too_large = |_| said(StatusCode::PAYLOAD_TOO_LARGE, "A form has at most 64 KiB, so nothing was done.");
    Ok(fields(&body.map_err(too_large)?))
}

fn fields(encoded: &[u8]) -> Fields {
    form_urlencoded::parse(encoded).into_owned().collect()
}

fn text<'f>(fields: &'f Fields, name: &str) -> &'f str {
    fields.get(name).map_or("", String::as_str)
}

const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");

fn html(status: StatusCode, page: Markup) -> Response {
    (status, [(header::CONTENT_TYPE, HTML)], page.into_string()).into_response()
}

fn said(status: StatusCode, text: &str) -> Response {
    html(status, sentence(text))
}

fn file(kind: &'static str, text: &'static str) -> Response {
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}

fn redirect(to: &str) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    if let Ok(to) = HeaderValue::from_str(to) {
        response.headers_mut().insert(header::LOCATION, to);
    }
    response
}
