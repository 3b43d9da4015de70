//! One HTTP exchange with a component: a request is passed to its `incoming-handler`, and its response is read while it runs.

use std::{future::poll_fn, pin::pin, task::Poll, time::Duration};

use bytes::Bytes;
use http::Response;
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use tokio::sync::oneshot::{self, Receiver, Sender};
use wasmtime::{
    Store,
    component::{ComponentExportIndex, Instance, Resource, TypedFunc},
};
use wasmtime_wasi_http::{
    Error as HttpError, WasiBody, WasiHttpView as _,
    p2::{
        bindings::http::types::{ErrorCode, Scheme},
        types::{HostIncomingRequest, HostResponseOutparam},
    },
};

use super::reader::{Reader, Told, wrong};
use crate::{
    contract::operation::{CallError, call_error},
    wasi::store::State,
};

/// How long a component may still run after it has answered a request. What it does then does not change the answer.
const AFTER_ANSWER: Duration = Duration::from_secs(1);

/// The name of the interface, up to its version.
pub(crate) const HANDLER_INTERFACE_PREFIX: &str = "wasi:http/incoming-handler@0.2.";

type Handle = TypedFunc<(Resource<HostIncomingRequest>, Resource<HostResponseOutparam>), ()>;
type Answered = Result<Response<WasiBody>, ErrorCode>;

/// Passes a request to the component in an instance, and reads the response. Also returns whether the component has returned, so that its
/// instance can be used again. `handler`: the function of the component that handles requests.
pub(super) async fn exchange(
    handler: ComponentExportIndex,
    (store, instance): (&mut Store<State>, &Instance),
    request: http::Request<Bytes>,
    reader: &mut Reader,
) -> (Result<Told, CallError>, bool) {
    let trap = |error: &wasmtime::Error| call_error(error);
    let (sender, receiver) = oneshot::channel();
    let (handle, request, out) = match prepare((&mut *store, instance), handler, request, sender) {
        Ok(prepared) => prepared,
        Err(error) => return (Err(trap(&error)), false),
    };
    let mut running = pin!(handle.call_async(store, (request, out)));
    // Without tokio's budget, a future that is pending has nothing to read, so its state after the end of the component is final.
    let mut reading = pin!(tokio::task::unconstrained(read(receiver, reader)));
    let first = tokio::select! {
        biased;
        ended = &mut running => Err(ended),
        read = &mut reading => Ok(read),
    };
    match first {
        Ok((told, body)) => {
            // After an answer that is only too large, or has used up the memory, the instance is not used again.
            if !matches!(told, Ok(_) | Err(CallError::NotMcp(_))) {
                return (told, false);
            }
            let rest = async {
                // What follows is read, so that the component can return, and is ignored.
                let mut drain = pin!(drain(body));
                let mut drained = false;
                loop {
                    tokio::select! {
                        biased;
                        ended = &mut running => return ended.is_ok(),
                        () = &mut drain, if !drained => drained = true,
                    }
                }
            };
            let returned = tokio::time::timeout(AFTER_ANSWER, rest).await.unwrap_or(false);
            (told, returned)
        }
        Err(ended) => {
            let read = poll_fn(|cx| Poll::Ready(reading.as_mut().poll(cx))).await;
            match (read, ended) {
                (Poll::Ready((Ok(told), _)), ended) => (Ok(told), ended.is_ok()),
                (_, Err(error)) => (Err(trap(&error)), false),
                (Poll::Ready((Err(error), _)), Ok(())) => (Err(error), true),
                (Poll::Pending, Ok(())) => (Err(wrong("its handler returned before its answer was complete")), true),
            }
        }
    }
}

/// Looks the function up, and makes its arguments.
fn prepare(
    (store, instance): (&mut Store<State>, &Instance),
    handler: ComponentExportIndex,
    request: http::Request<Bytes>,
    sender: Sender<Answered>,
) -> wasmtime::Result<(Handle, Resource<HostIncomingRequest>, Resource<HostResponseOutparam>)> {
    let handle = instance.get_typed_func(&mut *store, handler)?;
    let request = request.map(|body| Full::new(body).map_err(|never| match never {}));
    let mut http = store.data_mut().http();
    let request =
        http.new_incoming_request::<UnsyncBoxBody<Bytes, HttpError>>(Scheme::Http, request.map(BodyExt::boxed_unsync))?;
    let out = http.new_response_outparam(sender)?;
    Ok((handle, request, out))
}

async fn drain(body: Option<WasiBody>) {
    if let Some(mut body) = body {
        while let Some(Ok(_)) = body.frame().await {}
    }
}

async fn read(receiver: Receiver<Answered>, reader: &mut Reader) -> (Result<Told, CallError>, Option<WasiBody>) {
    let response = match receiver.await {
        Ok(Ok(response)) => response,
        Ok(Err(code)) => return (Err(wrong(format_args!("it answers with the error {code:?} of wasi:http"))), None),
        Err(_) => return (Err(wrong("it drops a request without an answer")), None),
    };
    let (parts, mut body) = response.into_parts();
    (reader.read(parts.status, &parts.headers, &mut body).await, Some(body))
}
