//! The approval gate: if `confirm` in the config says so, a call runs only after a person has approved it. Either the client asks its user,
//! or a program of the operator asks. An approval is for the one call that the question was about, or, if the person chooses that and the
//! operator allows it, for further calls that a rule covers.

use std::sync::Arc;

use futures_util::future::join_all;
use serde_json::Value;
use sha2::{Digest, Sha256};
use wharf_protocol::{Object, RpcError, model::Question, revision::Era};
use wharf_sandbox::model::ClientCapabilities;

use super::{
    failed::{Failed, Said, Why},
    request::Request,
};
use crate::client::{context::Context, seat::OfRequest, session::PERSON_TIMEOUT};
use wharf_base::{
    heavy::heavy,
    principal::Principal,
    program::Command,
    refusals::{Reason, What},
    request_state::Carried,
    session_id::now,
    text::{hex, toml_header},
};
use wharf_config::config::{
    SESSION_LIFETIME,
    approvals::{Asker, Confirm, Remember, Which},
};
use wharf_plugins::{
    approvals::{
        Yes,
        answer::{self, KEY},
        kept,
        remembered::KIND_BYTES,
        rule::{ApprovalKey, ApprovalRule, ApprovalRules, CallKind},
        subject::ApprovalSubject,
    },
    bridge::{self, OfferedTool},
    observe::{journal::Event, record::ApprovalOutcome},
    plugins::served::Sharing,
};
use wharf_policy::access::call_roots::CallRoots;
use wharf_window::{
    board::{Board, OpenQuestion},
    state::{self, SeenChoice, SeenQuestion},
};

/// The refusals that are logged, at a limited rate.
const UNASKABLE: What =
    What::new("calls that a person has to approve, from clients that cannot ask one", Reason::Other("unaskable"));
const DENIED: What = What::new("calls that a person did not approve", Reason::Other("not_approved"));

/// Asks for approval if the config requires it for this call. None: the config does not.
pub async fn pass(
    ctx: &Context,
    request: &Request<'_>,
    confirm: &Confirm,
    roots: &CallRoots,
    offered: &Object,
    carried: &mut Carried,
) -> Result<Option<ApprovalOutcome>, Failed> {
    if !is_asked(confirm, request, roots) {
        return Ok(None);
    }
    if ctx.arrival.approved {
        return Ok(Some(ApprovalOutcome::Client));
    }
    let gate = Gate::new(ctx, request, confirm, roots);
    if carried.approval.given == Some(gate.kind.0) {
        return Ok(Some(match confirm.asker {
            Asker::Client => ApprovalOutcome::Client,
            Asker::Command(_) => ApprovalOutcome::Command,
        }));
    }
    if let Some(known) = gate.known().await {
        return Ok(Some(known));
    }
    // A session asks one question at a time, until its answer is remembered, so that no question is asked that another
    // answer has made needless.
    let mut _turn = None;
    if let Some(session) = &ctx.session {
        let turn = &session.approvals.turn;
        _turn = turn.try_lock().ok();
        if _turn.is_none() {
            _turn = ctx.away(tokio::time::timeout(PERSON_TIMEOUT, turn.lock())).await?.ok();
            if let Some(known) = gate.known().await {
                return Ok(Some(known));
            }
        }
    }
    let answered = match &confirm.asker {
        Asker::Command(command) => ctx.away(gate.ask_program(command)).await,
        Asker::Client => ctx.away(gate.ask_person(offered, carried)).await,
    };
    match answered? {
        Ok(Decision::Yes(yes, by)) => {
            carried.approval.given = Some(gate.kind.0);
            // While the person decided, the operator may have revoked access of the plugin.
            if request.served.access.is_revoked() {
                let id = &request.served.config.id;
                let gone = format!("The operator took away access of the plugin `{id}`; nothing was run.");
                return Err(gate.refuse(Why::Revoked, gone).await);
            }
            // The client may also have closed a folder that the question showed.
            if let Some(session) = request.root_owner(ctx)
                && session.has_closed(&ctx.server, &ctx.outbox, ctx.party(), roots).await
            {
                let closed = "A root that was shown has been closed meanwhile; nothing was run.";
                return Err(gate.refuse(Why::Revoked, closed.to_owned()).await);
            }
            gate.remember(yes).await;
            Ok(Some(by))
        }
        Ok(Decision::No(text)) => {
            ctx.server.refusals.say_of(DENIED, || request.name.to_owned());
            Err(gate.refuse(Why::Refused, text).await)
        }
        Err(failed) => Err(failed),
    }
}

/// Whether a person has to approve this call.
fn is_asked(confirm: &Confirm, request: &Request<'_>, roots: &CallRoots) -> bool {
    match &confirm.which {
        Which::All => true,
        Which::Writes => {
            let grants = &request.served.config.grants;
            // A folder that does not exist now may exist when the call runs.
            grants.can_write(grants.roots.0.is_some_and(|access| roots.may_write(access))) && !only_reads(request)
        }
        Which::Destructive => request.tool.is_some_and(|tool| {
            let hint = |key| hint(tool, key);
            // Annotations that a tool leaves out have the defaults of the MCP specification.
            !hint("readOnlyHint").unwrap_or(false) && hint("destructiveHint").unwrap_or(true)
        }),
        Which::Tools(patterns) => {
            request.tool.is_some_and(|tool| patterns.iter().any(|pattern| pattern.matches(&tool.own_name)))
        }
    }
}

fn hint(tool: &OfferedTool, key: &str) -> Option<bool> {
    tool.published.annotations.as_ref()?.get(key)?.as_bool()
}

/// Whether a call runs without a question although `confirm = "writes"`, and with no folder writable, because its tool says that it only
/// reads.
pub fn only_reads(request: &Request<'_>) -> bool {
    let served = request.served;
    let grants = &served.config.grants;
    served.config.confirm.as_ref().is_some_and(|confirm| confirm.which == Which::Writes)
        && request.tool.is_some_and(|tool| hint(tool, "readOnlyHint") == Some(true))
        // With other access, the call would end the instance that keeps the client's state.
        && served.sharing() != Sharing::One
        // What it reads, it could send away by a request, and no folder prevents that.
        && grants.http.0.rules.is_empty()
        && grants.can_write(true)
}

fn subject<'a>(request: &'a Request<'_>, roots: &CallRoots) -> ApprovalSubject<'a> {
    let config = &request.served.config;
    let dirs = config.grants.dirs.0.iter().map(|dir| (dir.host.display().to_string(), dir.access));
    let roots = config.grants.roots.0.map(|access| roots.shown(access));
    let folders = dirs.chain(roots.into_iter().flatten());
    ApprovalSubject {
        method: request.method,
        name: request.name,
        arguments: request.arguments.value(),
        plugin: &config.id,
        digest: request.served.plugin.code().digest().as_bytes(),
        definition: request.tool.map(|tool| tool.fingerprint()).unwrap_or_default(),
        folders: folders.collect(),
        guest_folders: config.grants.dirs.0.iter().map(|dir| dir.guest.clone()).collect(),
        http: config.grants.http.0.rules.iter().map(ToString::to_string).collect(),
        grants: format!("{:?} {}", config.grants, config.settings.json()),
    }
}

struct Gate<'a> {
    ctx: &'a Context,
    request: &'a Request<'a>,
    confirm: &'a Confirm,
    subject: ApprovalSubject<'a>,
    kind: CallKind,
    /// The narrowest rule for further calls, if the approval can be remembered.
    rule: Option<ApprovalRule>,
    /// The keys of the approvals that cover the call.
    covering: Vec<ApprovalKey>,
}

/// What a person, or the program in place of one, decided about a call.
enum Decision {
    Yes(Yes, ApprovalOutcome),
    /// A sentence for the model.
    No(String),
}

impl<'a> Gate<'a> {
    fn new(ctx: &'a Context, request: &'a Request<'a>, confirm: &'a Confirm, roots: &CallRoots) -> Self {
        let subject = subject(request, roots);
        let kind = subject.kind();
        let mut gate = Self { ctx, request, confirm, subject, kind, rule: None, covering: Vec::new() };
        if gate.longest() > Remember::Never {
            let known = gate.known_arguments();
            let ApprovalRules { narrowest, covering } = heavy(request.bytes, || gate.subject.rules(&known));
            gate.rule = Some(narrowest);
            gate.covering = covering.iter().map(|rule| rule.of_kind(&kind)).collect();
        }
        gate
    }

    /// Returns the names of the arguments that the tool declares.
    fn known_arguments(&self) -> Vec<String> {
        self.request.tool.map(|tool| tool.arguments()).unwrap_or_default()
    }

    /// Returns the earlier approval that covers this call, if there is one.
    async fn known(&self) -> Option<ApprovalOutcome> {
        let (server, principal) = (&self.ctx.server, self.ctx.principal());
        if self.covering.is_empty() {
            return None;
        }
        let remembered = match &self.ctx.session {
            Some(session) => session.approvals.remembered.has(&self.covering),
            None if *principal == Principal::Anonymous => false,
            None => server.approvals.principals.has(principal, &self.covering),
        };
        if remembered || self.is_known_elsewhere().await {
            return Some(ApprovalOutcome::Session);
        }
        let kept = server.approvals.kept.as_ref().filter(|_| self.longest() == Remember::Always)?;
        kept.has(&self.covering, &principal.to_string()).then_some(ApprovalOutcome::Always)
    }

    /// Whether an approval at another replica covers the call. If Redis does not answer, the person is asked.
    async fn is_known_elsewhere(&self) -> bool {
        let Some(cluster) = &self.ctx.server.cluster else { return false };
        let names = self.covering.iter().filter_map(|key| self.shared_name(key));
        let found = join_all(names.map(|name| async move { cluster.get::<u64>(&name).await.ok().flatten() })).await;
        // Redis could return a value for longer than it was stored for.
        found.into_iter().flatten().any(|until| until > now())
    }

    /// Returns the name under which replicas store an approval for further calls. None: the client cannot be recognized.
    fn shared_name(&self, key: &ApprovalKey) -> Option<String> {
        let client = match (&self.ctx.session, self.ctx.principal()) {
            (Some(session), _) => format!("session {}", session.id),
            (None, Principal::Anonymous) => return None,
            (None, principal) => format!("principal {principal}"),
        };
        Some(format!("approved:{}:{}", hex(&Sha256::digest(client)), hex(&key.0)))
    }

    /// Returns how long an approval may be remembered. An anonymous client without a session cannot be recognized later.
    fn longest(&self) -> Remember {
        let most = match (self.ctx.principal(), &self.ctx.session) {
            (Principal::Anonymous, None) => Remember::Never,
            (Principal::Anonymous, Some(_)) => Remember::Session,
            _ if self.ctx.server.approvals.kept.is_none() => Remember::Session,
            _ => Remember::Always,
        };
        self.confirm.remember.min(most)
    }

    async fn ask_program(&self, command: &Command) -> Result<Decision, Failed> {
        let approvals = &self.ctx.server.approvals;
        let asking = Arc::new(OfRequest(self.ctx.seat()));
        let told =
            heavy(self.request.bytes, || self.subject.json(&self.ctx.principal().to_string(), self.rule.as_ref()));
        match approvals.ask_program((self.ctx.party(), asking), command, &told, self.longest()).await {
            Ok(Some(yes)) => Ok(Decision::Yes(yes, ApprovalOutcome::Command)),
            Ok(None) => Ok(Decision::No("The operator's program for approvals said no; nothing was run.".into())),
            Err(error) => {
                tracing::warn!("the program for approvals does not work, so calls are refused: {error:#}");
                let text = "The operator's program for approvals does not work; nothing was run.";
                Ok(Decision::No(text.into()))
            }
        }
    }

    /// Asks the user in the client and in the windows. The first answer counts.
    async fn ask_person(&self, offered: &Object, carried: &mut Carried) -> Result<Decision, Failed> {
        let Some((board, mut asked)) = self.shown() else { return self.ask_client(offered, carried).await };
        let cannot = bridge::missing_capabilities(ClientCapabilities::FORM, &self.ctx.capabilities).is_some();
        if cannot && board.is_watched() {
            let answered = tokio::time::timeout(PERSON_TIMEOUT, asked.answered()).await;
            return Ok(match answered {
                Ok(word) => self.decided(&word),
                Err(_) => Decision::No("The user did not answer in the window. Nothing was run.".into()),
            });
        }
        tokio::select! {
            biased;
            answered = self.ask_client(offered, carried) => answered,
            word = asked.answered() => Ok(self.decided(&word)),
        }
    }

    /// Shows the question in the windows of the user, as long as the returned guard is held.
    fn shown(&self) -> Option<(&Board, OpenQuestion)> {
        let board = self.ctx.server.observers.board()?;
        let text = heavy(self.request.bytes, || self.subject.whole_text(&self.known_arguments()));
        let rule = self.rule.as_ref().unwrap_or(&ApprovalRule::Any);
        let yes = answer::choices(self.request.name, self.longest(), rule);
        let choices = std::iter::once(("no", "Do not run it".to_owned())).chain(yes);
        let question = SeenQuestion {
            session: self.ctx.session.as_ref().map(|session| session.digest().to_owned()),
            plugin: self.request.served.config.id.clone(),
            name: state::shown(self.request.name),
            text,
            answers: choices.map(|(word, text)| SeenChoice { word: word.to_owned(), text }).collect(),
            ..SeenQuestion::default()
        };
        Some((board, board.ask(self.ctx.party().number(), question)?))
    }

    /// Returns what a choice in a window means.
    fn decided(&self, word: &str) -> Decision {
        match answer::chosen(word, self.longest()) {
            Some(yes) => Decision::Yes(yes, ApprovalOutcome::Window),
            None => Decision::No("The user said no in the window; nothing was run.".into()),
        }
    }

    async fn ask_client(&self, offered: &Object, carried: &mut Carried) -> Result<Decision, Failed> {
        let Self { ctx, request, kind, .. } = self;
        let missing = bridge::missing_capabilities(ClientCapabilities::FORM, &ctx.capabilities);
        if let Some(missing) = missing {
            ctx.server.refusals.say_of(UNASKABLE, || request.name.to_owned());
            let text = format!(
                "`{}` needs a person's approval, and this client cannot ask for one. The operator can change `confirm` in \
                 {}.",
                request.name,
                toml_header(&["plugins", &request.served.config.id])
            );
            self.refuse(Why::NeedsApproval, text.clone()).await;
            let said = match ctx.encoder.revision.era() {
                Era::Modern => Said::Rpc(RpcError::missing_capability(text, missing)),
                Era::Legacy => Said::Explained(text),
            };
            return Err(Failed { why: Why::NeedsApproval, said });
        }
        if let Some(session) = &ctx.session {
            let (method, params) = ctx.encoder.question(&self.question());
            let reply = session.ask(&ctx.outbox, method, params, PERSON_TIMEOUT).await;
            return Ok(match reply {
                Ok(reply) => self.read(&reply).unwrap_or_else(|problem| {
                    Decision::No(format!("The client's answer does not fit the question: {problem}. Nothing was run."))
                }),
                Err(problem) => Decision::No(format!("{problem} Nothing was run.")),
            });
        }
        match (offered.get(KEY), carried.approval.asked) {
            (Some(reply), Some(asked)) if asked == kind.0 => self
                .read(reply)
                .map_err(|problem| RpcError::invalid_params(format!("`inputResponses.{KEY}`: {problem}")).into()),
            (Some(_), None) => Err(RpcError::invalid_params(format!(
                "`inputResponses.{KEY}` answers a question about approval: send it with the `requestState` that came with the \
                 question. An answer counts once"
            ))
            .into()),
            // The question is not answered; or the plugin or its permissions have changed since, so that the person has to be asked again.
            _ => {
                carried.approval.asked = Some(kind.0);
                Err(request.input_required(ctx, &[(KEY.to_owned(), self.question())], std::mem::take(carried)))
            }
        }
    }

    fn question(&self) -> Question {
        let text = heavy(self.request.bytes, || self.subject.text(&self.known_arguments()));
        answer::question(text, self.request.name, self.longest(), self.rule.as_ref().unwrap_or(&ApprovalRule::Any))
    }

    fn read(&self, reply: &Value) -> Result<Decision, String> {
        let answer = answer::read(reply, self.longest())?;
        Ok(match answer {
            Some(yes) => Decision::Yes(yes, ApprovalOutcome::Client),
            None => Decision::No("The client answered no; nothing was run.".into()),
        })
    }

    /// Records the refusal, and returns its text for the model.
    async fn refuse(&self, why: Why, text: String) -> Failed {
        self.request.record(self.ctx, None, Some(ApprovalOutcome::Refused)).refuse("approval".to_owned()).await;
        Failed::new(why, text)
    }

    /// Remembers an approval for further calls.
    async fn remember(&self, yes: Yes) {
        let (ctx, server) = (self.ctx, &self.ctx.server);
        let Some(narrowest) = self.rule.as_ref().filter(|_| yes.remember > Remember::Never) else { return };
        let rule = if yes.any { &ApprovalRule::Any } else { narrowest };
        let kept = match yes.remember {
            Remember::Never => None,
            Remember::Session if self.remember_for_session(rule.of_kind(&self.kind)).await => {
                Some(ApprovalOutcome::Session)
            }
            Remember::Session => {
                tracing::warn!("an approval is not remembered, because too many already are");
                None
            }
            Remember::Always => match self.keep(rule).await {
                Ok(()) => Some(ApprovalOutcome::Always),
                Err(error) => {
                    tracing::warn!("an approval is not remembered: {error:#}");
                    None
                }
            },
        };
        if let Some(remembered) = kept {
            server.observers.note(|| Event::Approved {
                plugin: self.subject.plugin.to_owned(),
                name: self.subject.name.to_owned(),
                principal: ctx.principal().to_string(),
                remembered,
            });
        }
    }

    async fn remember_for_session(&self, key: ApprovalKey) -> bool {
        let (ctx, server) = (self.ctx, &self.ctx.server);
        if let Some((cluster, name)) = server.cluster.as_ref().zip(self.shared_name(&key)) {
            let lives = SESSION_LIFETIME;
            let until = now().saturating_add(u64::try_from(lives.as_millis()).unwrap_or(u64::MAX));
            // If it cannot be stored, the person is asked again at other replicas.
            cluster.put(&name, &until, lives, (ctx.party(), 0)).await.ok();
        }
        match &ctx.session {
            Some(session) => {
                let charge = session.account.charge(KIND_BYTES).ok();
                charge.is_some_and(|charge| session.approvals.remembered.add(key, charge))
            }
            None => server.approvals.principals.add(ctx.principal(), ctx.party(), key).is_ok(),
        }
    }

    async fn keep(&self, rule: &ApprovalRule) -> anyhow::Result<()> {
        let server = Arc::clone(&self.ctx.server);
        let approval = kept::RememberedApproval::of(&self.subject, rule, &self.ctx.principal().to_string());
        let keep = server.tracker.clone().spawn_blocking(move || match &server.approvals.kept {
            Some(kept) => kept.add(approval),
            None => Ok(()),
        });
        keep.await?
    }
}
