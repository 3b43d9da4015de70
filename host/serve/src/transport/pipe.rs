//! One client at the other end of a pipe. Legacy and modern messages may be mixed; each message shows which it is.
//!
//! Each request runs in a task of its own, so that nothing waits behind it. All messages to the client go through one queue.

use std::{net::IpAddr, sync::Arc};

use parking_lot::Mutex;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use wharf_protocol::{
    Feature, Frame, Malformed, Message, Method, Notification, Request, Revision, RpcError,
    message::{error_text, result_text},
    notification::{self, KnownNotification},
};

use super::admission::{self, Admitted, Door, Named, Refusal};
use crate::{
    client::{
        context::Arrival, in_flight::InFlight, notifier::Feed, outbox::Outbox, seat::Taken, server::Server,
        session::Session,
    },
    methods::{response::ResponseText, router},
};
use wharf_base::{
    ledger::{Accounts, Charge},
    party::Party,
};
use wharf_plugins::observe::record::Transport;
use wharf_policy::{access::call_roots::CallRoots, auth::Caller};

/// The client at the other end.
#[derive(Clone)]
pub struct PipeClient {
    pub caller: Caller,
    /// The profile, a named part of the catalog, that the client connected to.
    pub profile: Option<Arc<str>>,
    /// Folders that are opened to the client, in place of any roots that it lists itself.
    pub roots: Option<CallRoots>,
    pub transport: Transport,
    /// The address of the client, if it is on a network.
    pub address: Option<IpAddr>,
}

pub struct Pipe {
    server: Arc<Server>,
    outbox: Outbox,
    client: PipeClient,
    accounts: Accounts,
    /// The client, with the credentials of its latest message.
    caller: Mutex<Caller>,
    modern: bool,
    /// All tasks that work for the client.
    tracker: TaskTracker,
    /// Cancelled when the client is gone or wharf stops.
    stop: Arc<CancellationToken>,
    session: Mutex<Option<Arc<Session>>>,
    in_flight: InFlight,
    feeding: Mutex<bool>,
    /// Whether the session's roots are followed.
    following: Mutex<bool>,
}

impl Pipe {
    /// `modern`: whether modern requests, which need no handshake, are served here too.
    pub fn new(server: Arc<Server>, outbox: Outbox, client: PipeClient, accounts: Accounts, modern: bool) -> Arc<Self> {
        let (session, in_flight, feeding, following, tracker) = Default::default();
        let stop = Arc::new(server.stop.child_token());
        let caller = Mutex::new(client.caller.clone());
        Arc::new(Self {
            server,
            outbox,
            client,
            accounts,
            caller,
            modern,
            tracker,
            stop,
            session,
            in_flight,
            feeding,
            following,
        })
    }

    /// Stores the client with the credentials of its latest message.
    pub fn seen_as(&self, caller: &Caller) {
        *self.caller.lock() = caller.clone();
    }

    /// Ends subscriptions and stops sending changes, because the client has sent its last message. Requests under way may
    /// finish; they are in the returned tracker.
    pub fn end(&self) -> TaskTracker {
        self.stop.cancel();
        self.tracker.close();
        self.tracker.clone()
    }

    /// Whether no request is under way.
    pub fn is_idle(&self) -> bool {
        self.in_flight.is_empty()
    }

    /// Ends the client's session and tasks too, because the client cannot send anything any more. Questions to it fail.
    pub fn abandon(&self) -> TaskTracker {
        if let Some(session) = self.session() {
            session.ended.cancel();
        }
        self.end()
    }

    fn session(&self) -> Option<Arc<Session>> {
        self.session.lock().clone()
    }

    /// Returns the revision for errors about messages that do not name one.
    fn revision(&self) -> Revision {
        self.session().map_or(Revision::NEWEST_LEGACY, |session| session.revision)
    }

    async fn send(&self, text: String) {
        // An error means that the pipe is broken, which the reader notices too.
        self.outbox.send(text).await.ok();
    }

    pub async fn refuse(&self, malformed: Malformed) {
        self.send(error_text(malformed.id.as_ref(), &malformed.error, self.revision())).await;
    }

    /// Handles a message. `charge`: the memory charged for it. `party`: the party on whose account its requests take places. `place`:
    /// called for each request in it; takes a place for the request, on transports where the number of requests is limited.
    pub async fn take<E>(
        self: &Arc<Self>,
        line: Vec<u8>,
        charge: Charge,
        party: Party,
        place: impl Fn() -> Result<Option<Taken>, E>,
    ) -> Result<(), E> {
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        let charge = Arc::new(charge);
        let (one, batch) = match Frame::parse(line) {
            Ok(Frame::One(message)) => (Some(Ok(message)), Vec::new()),
            Ok(Frame::Batch(messages)) if self.knows_batches() => (None, messages),
            Ok(Frame::Batch(_)) => {
                let error = RpcError::invalid_request("batches exist only in sessions of revision 2025-03-26");
                (Some(Err(Malformed { id: None, error })), Vec::new())
            }
            Err(malformed) => (Some(Err(malformed)), Vec::new()),
        };
        for message in one.into_iter().chain(batch) {
            match message {
                Ok(Message::Request(request)) => self.request(request, Arc::clone(&charge), party, place()?).await,
                Ok(Message::Notification(notification)) => self.notification(&notification, party),
                Ok(Message::Response(response)) => {
                    if let Some(session) = self.session() {
                        session.take_response(response, Arc::clone(&charge));
                    }
                }
                Err(malformed) => self.refuse(malformed).await,
            }
        }
        Ok(())
    }

    /// Whether the session's revision has batches, as only 2025-03-26 does. The answers to a batch are sent one by one.
    fn knows_batches(&self) -> bool {
        self.session().is_some_and(|session| session.revision.has(Feature::Batches))
    }

    /// Begins no work of its own for each notification, because nothing limits how many a client sends.
    fn notification(self: &Arc<Self>, notification: &Notification, party: Party) {
        if notification.known() == Some(KnownNotification::Cancelled) {
            return self.in_flight.cancel(notification.params.as_ref());
        }
        let Some(session) = self.session() else { return };
        let roots_changed = session.notified(notification);
        if notification.known() == Some(KnownNotification::Initialized) || roots_changed {
            self.begin(&session);
            self.follow_roots(session, party);
        }
    }

    /// Begins to ask the client for its roots, now and whenever it says that they have changed, so that no call has to wait for them. On a
    /// pipe the client can be asked at any time. One task does that, however often the client says so.
    fn follow_roots(self: &Arc<Self>, session: Arc<Session>, party: Party) {
        if std::mem::replace(&mut *self.following.lock(), true) {
            return;
        }
        let (server, outbox, stop) = (Arc::clone(&self.server), self.outbox.clone(), Arc::clone(&self.stop));
        self.tracker.spawn(async move {
            let follow = async {
                let mut changes = session.roots_changes();
                loop {
                    let catalog = server.published.catalog().await;
                    let needed = catalog.served().iter().any(|served| served.config.grants.roots.is_given());
                    drop(catalog);
                    if needed && server.scopes.accepts_roots().is_ok() {
                        session.roots(&server, &outbox, party).await;
                    }
                    // The session holds the sender, so this never fails.
                    if changes.changed().await.is_err() {
                        return;
                    }
                }
            };
            tokio::select! {
                () = follow => {}
                () = stop.cancelled() => {}
            }
        });
    }

    /// Begins to send the session notifications about changes.
    fn begin(self: &Arc<Self>, session: &Arc<Session>) {
        let mut feeding = self.feeding.lock();
        if std::mem::replace(&mut *feeding, true) {
            return;
        }
        let feed = Feed::open(&self.server);
        let (stop, session, outbox) = (self.stop.clone(), Arc::clone(session), self.outbox.clone());
        self.tracker.spawn(async move {
            tokio::select! {
                () = feed.run(&*session, &outbox) => {}
                () = stop.cancelled() => {}
            }
        });
    }

    /// Admits a request, and answers it in a task of its own. `place`: held until the answer is there.
    async fn request(self: &Arc<Self>, request: Request, charge: Arc<Charge>, party: Party, place: Option<Taken>) {
        if request.known() == Some(Method::Initialize) {
            self.server.ready_to_introduce().await;
            let admitted = self.server.admit_introduction(&self.caller.lock());
            if let Err(error) = admitted {
                self.refuse(Malformed { id: Some(request.id), error }).await;
                return self.server.told.cancel();
            }
        }
        let arrival = Arrival {
            transport: Some(self.client.transport),
            address: self.client.address,
            caller: self.caller.lock().clone(),
            party,
            profile: self.client.profile.clone(),
            roots: self.client.roots.clone(),
            approved: false,
            stop: Some(Arc::clone(&self.stop)),
            charge,
            link: None,
            request_id: None,
        };
        let door = Door { server: &self.server, accounts: &self.accounts, modern: self.modern, headers: None };
        let session = |_| self.session().map_or(Named::None, Named::Is);
        let admitted = admission::admit(&door, arrival, &request, session, |_| self.outbox.of_request());
        let ctx = match admitted {
            Ok(Admitted::Runs(ctx)) => ctx,
            Ok(Admitted::Opens(session, result)) => {
                *self.session.lock() = Some(session);
                return self.send(result_text(&request.id, &result)).await;
            }
            Ok(Admitted::Is(result)) => return self.send(result_text(&request.id, &result)).await,
            Err(Refusal { error, .. }) => return self.refuse(Malformed { id: Some(request.id), error }).await,
        };
        if let Some(session) = &ctx.session {
            self.begin(session);
        }
        // Registered as under way before the next line is read, since that line may cancel it.
        let entered = match self.in_flight.enter(&request.id, &ctx.outbox.voice) {
            Ok(entered) => entered,
            Err(error) => return self.refuse(Malformed { id: Some(request.id), error }).await,
        };
        let sitting = place.map(|place| ctx.sit(place));
        let pipe = Arc::clone(self);
        self.tracker.spawn(async move {
            let answer = tokio::select! {
                // A cancelled request gets no answer and no other messages, whatever ends it at the same time.
                biased;
                () = entered.cancelled.cancelled() => return,
                // The client is gone and cannot read the answer.
                () = pipe.outbox.closed() => return,
                answer = router::answer(&ctx, &request.method, request.params.as_ref()) => answer,
            };
            ctx.let_progress_arrive().await;
            let listened = answer.is_ok() && request.known() == Some(Method::Listen);
            let text = ResponseText::of(&ctx, answer).into_string();
            // Released before the answer is sent, because the client may use the id again as soon as it reads the answer.
            drop((entered, sitting));
            pipe.send(text).await;
            if listened {
                pipe.send(notification::cancelled(&request.id, "the server is stopping")).await;
            }
        });
    }
}
