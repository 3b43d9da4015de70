//! The fake servers of a case: they answer the requests that `given.http` lists, and record all others.

use bytes::Bytes;
use http::{Method, Request, Response, Uri, header::CONTENT_TYPE};
use http_body_util::{BodyExt, Full};
use parking_lot::Mutex;
use wharf_scope::network::{Body, HttpFailure, Unsent};

use super::cases::Exchange;
use wharf_config::config::to_json;
use wharf_egress::{
    answers::{Answering, Answers},
    target,
};

/// The maximum number of unlisted requests that are recorded.
const MAX_UNLISTED: usize = 16;

pub struct Servers {
    scripted: Vec<Scripted>,
    state: Mutex<State>,
}

struct Scripted {
    method: Method,
    url: Uri,
    response: Response<Bytes>,
}

#[derive(Default)]
struct State {
    /// The indices of the answers that were given.
    given: Vec<usize>,
    /// Requests of the plugin that `given.http` does not list.
    unlisted: Vec<String>,
}

impl Servers {
    /// Reads `given.http`. The error says what is wrong with it.
    pub fn new(exchanges: &[Exchange]) -> Result<Self, String> {
        let scripted = exchanges.iter().map(|exchange| {
            Scripted::of(exchange).map_err(|problem| format!("`given.http`: {}: {problem}", exchange.url))
        });
        Ok(Self { scripted: scripted.collect::<Result<_, _>>()?, state: Mutex::default() })
    }

    /// Returns the requests of the plugin that `given.http` does not list.
    pub fn unlisted(&self) -> Vec<String> {
        self.state.lock().unlisted.clone()
    }

    /// Returns the next answer. Several answers to the same request are given one after the other, and the last one is repeated.
    fn next(&self, method: &Method, url: &Uri) -> Option<Response<Bytes>> {
        let fitting = || {
            let all = self.scripted.iter().enumerate();
            all.filter(|(_, one)| one.method == *method && one.url == *url)
        };
        let mut state = self.state.lock();
        let fresh = fitting().find(|(index, _)| !state.given.contains(index));
        match fresh.or_else(|| fitting().last()) {
            Some((index, one)) => {
                state.given.push(index);
                Some(one.response.clone())
            }
            None => {
                if state.unlisted.len() < MAX_UNLISTED {
                    state.unlisted.push(format!("{method} {url}"));
                }
                None
            }
        }
    }
}

impl Scripted {
    fn of(exchange: &Exchange) -> Result<Self, String> {
        let Exchange { method, url, status, headers, body, json } = exchange;
        let method = Method::from_bytes(method.as_bytes()).map_err(|_| format!("`{method}` is not an HTTP method"))?;
        let url = target::normal(url)?;
        let mut response = Response::builder().status(*status);
        if json.is_some() && !headers.keys().any(|name| name.eq_ignore_ascii_case(CONTENT_TYPE.as_str())) {
            response = response.header(CONTENT_TYPE, "application/json");
        }
        for (name, value) in headers {
            response = response.header(name, value);
        }
        let body = match json {
            Some(json) => to_json(json).to_string(),
            None => body.clone().unwrap_or_default(),
        };
        let response = response.body(Bytes::from(body)).map_err(|error| error.to_string())?;
        Ok(Self { method, url, response })
    }
}

impl Answers for Servers {
    fn answer(&self, request: Request<Body>) -> Answering<'_> {
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            // As a real server does, read the whole body first: an incomplete request gets no answer.
            body.collect().await.map_err(Unsent::Failed)?;
            let response = self.next(&parts.method, &parts.uri).ok_or(Unsent::Failed(HttpFailure::Refused))?;
            Ok(response.map(|body| Full::new(body).map_err(|never| match never {}).boxed_unsync()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers(text: &str) -> Result<Servers, String> {
        #[derive(serde::Deserialize)]
        struct All {
            http: Vec<Exchange>,
        }
        Servers::new(&toml::from_str::<All>(text).unwrap().http)
    }

    #[test]
    fn requests_are_answered_in_their_order() {
        let servers = servers(
            "http = [{ url = 'https://A.example:443/x?q=1', body = 'one' }, { url = 'https://a.example/x?q=1', status = 503 },
                     { method = 'POST', url = 'https://a.example/x', json = { n = 1 } }]",
        )
        .unwrap();
        let next = |method: Method, url: &str| {
            let response = servers.next(&method, &url.parse().unwrap())?;
            Some((response.status().as_u16(), String::from_utf8(response.body().to_vec()).unwrap()))
        };
        let get = "https://a.example/x?q=1";
        assert_eq!(next(Method::GET, get), Some((200, "one".into())));
        assert_eq!(next(Method::GET, get), Some((503, String::new())));
        assert_eq!(next(Method::GET, get), Some((503, String::new())));
        assert_eq!(next(Method::POST, "https://a.example/x"), Some((200, "{\"n\":1}".into())));
        assert_eq!(next(Method::GET, "https://a.example/x"), None);
        assert_eq!(servers.unlisted(), ["GET https://a.example/x"]);
    }

    #[test]
    fn mistakes_are_named() {
        for (text, expected) in [
            ("http = [{ url = 'ftp://a' }]", "ftp://a: the scheme is neither http nor https"),
            ("http = [{ url = 'https://a', method = 'G T' }]", "`G T` is not an HTTP method"),
            ("http = [{ url = 'https://a', headers = { 'a b' = 'c' } }]", "https://a: "),
        ] {
            let problem = servers(text).err().unwrap();
            assert!(problem.contains(expected), "{problem}");
        }
    }
}
