//! One run of a plugin. It is stopped when its access is taken away, and its outcome is reported to the operator and the
//! client.

use std::{borrow::Cow, sync::Arc, task::Poll};

use tracing::Instrument;
use wharf_protocol::Method;
use wharf_sandbox::{CallError, Client, Operation, PluginCall, Report, Traces};
use wharf_scope::{Denial, Scope, changes::Changes};

use super::{
    confirm,
    failed::{Failed, Said, Why},
    gates::Passed,
    noted::NotedFiles,
    parsed::converted,
    request::Request,
};
use crate::client::{context::Context, session::Session};
use wharf_base::{
    places::Place,
    principal::Owner,
    refusals::{Reason, What},
    text::{clean, clip, escaped},
};
use wharf_config::config::Config;
use wharf_plugins::{
    bridge,
    observe::{journal::Unrecorded, observers::Recording, record::Ended},
    plugins::served::{Served, Sharing},
};
use wharf_policy::{
    access::{call_roots::CallRoots, grants::hint, scope::Held, wants::want::WantedGrant},
    auth::Identity,
};

/// Logged at a limited rate while the audit log cannot be written.
const UNRECORDED: What = What::new("calls, because the audit log cannot be written", Reason::Other("unrecorded"));

/// Runs a plugin once. Stops it when the operator revokes a grant or a permission of the caller's roles, or the client closes one of its
/// roots. Returns the outcome, and what the client may know about refused permissions; that is empty if nothing was refused.
pub async fn run_once<O: Operation>(
    ctx: &Context,
    request: &Request<'_>,
    operation: O,
    passed: &Passed,
) -> Result<(O::Outcome, Hints), Failed> {
    let (served, roots) = (request.served, &passed.roots);
    let id = &served.config.id;
    // Taken for each run, so that a task holds no place while a person thinks. Boxed, so that the futures of other calls stay small.
    let _turns = match &ctx.task {
        Some(_) => Some(Box::pin(turns(ctx, served)).await),
        None => None,
    };
    let (mut scope, held, has_roots) = {
        let grants = match request.method {
            // No person is asked about completions, so they get only the grants that need no approval.
            Method::Complete => served.config.unasked_grants(),
            _ if confirm::only_reads(request) => Cow::Owned(served.config.grants.with_read_only_folders()),
            _ => Cow::Borrowed(&served.config.grants),
        };
        let (scope, held) = ctx.server.scopes.for_call(id, &grants, roots, ctx.party());
        (scope, held, grants.roots.is_given())
    };
    // Tasks may run longer than other calls.
    let timeout = ctx.task.as_ref().map(|_| served.config.tasks.timeout);
    let mut record = request.record(ctx, Some(&scope), passed.approval);
    follow_files(ctx, request, &record, &mut scope);
    if let Some(session) = ctx.session.as_ref().filter(|_| has_roots && record.is_shown()) {
        session.shown.set_roots(roots);
    }
    record.follow(&mut scope);
    if let Err(unrecorded) = record.admit().await {
        ctx.server.refusals.say(UNRECORDED);
        return Err(Failed::new(Why::Refused, format!("The call was not run: {unrecorded}.")));
    }
    let owner = request.root_owner(ctx);
    // A task may have waited long for its turn since its roots were found.
    if let (Some(_), Some(session)) = (&ctx.task, owner)
        && Box::pin(session.has_closed(&ctx.server, &ctx.outbox, ctx.party(), roots)).await
    {
        return Err(stopped(id, record, Lost::Root).await);
    }
    let span = tracing::debug_span!("run", plugin = id, action = request.method.as_str());
    let (events, client, party) = (ctx.events(id), client(ctx, request), ctx.party());
    let traces = Traces::default();
    record.trace(&traces);
    let call = PluginCall { operation, scope, events, timeout, client, party, traces };
    // Nothing that was taken away before the run begins is used.
    if let Some(lost) = already_lost(ctx, request, passed, &held) {
        return Err(stopped(id, record, lost).await);
    }
    let mut call = std::pin::pin!(served.plugin.call(call).instrument(span));
    // Most calls have ended when they first return, so only the others wait for what may be taken away.
    if let Poll::Ready(report) = futures_util::poll!(&mut call) {
        return finished(ctx, request, roots, record, report).await;
    }
    let lost = tokio::select! {
        biased;
        lost = Box::pin(lost(ctx, request, passed, (owner, &held))) => lost,
        report = call => return finished(ctx, request, roots, record, report).await,
    };
    Err(stopped(id, record, lost).await)
}

/// Has what the run changes in folders kept, so that the operator can take it back, and what it opens noted, if the run is shown.
fn follow_files(ctx: &Context, request: &Request<'_>, record: &Recording, scope: &mut Scope) {
    let keeper = keeper(ctx, request, scope);
    let changes = match (record.files(), keeper) {
        (None, None) => return,
        (None, Some(keeper)) => keeper,
        (Some(files), keeper) => Arc::new(NotedFiles { files, keeper }) as Arc<dyn Changes>,
    };
    for directory in &mut scope.directories {
        directory.changes = Some(Arc::clone(&changes));
    }
}

fn keeper(ctx: &Context, request: &Request<'_>, scope: &Scope) -> Option<Arc<dyn Changes>> {
    let undo = ctx.server.undo.as_ref().filter(|_| ctx.server.scopes.rehearsal().is_none())?;
    if !scope.directories.iter().any(|directory| directory.writable) {
        return None;
    }
    let session = ctx.session.as_ref().map_or(&*ctx.server.own_session, |session| session.digest());
    let session = session.chars().take(SESSION_CHARS).collect();
    Some(undo.record(request.served.config.id.clone(), clip(request.name), session))
}

/// How many characters of the digest of a session tell it from others.
const SESSION_CHARS: usize = 12;

/// Returns the client for which the instance of a run is retained, if it is. State that a call leaves in an instance is only for calls of
/// the same client.
fn client(ctx: &Context, request: &Request<'_>) -> Option<Box<Client>> {
    let (sharing, config) = (request.served.sharing(), &request.served.config);
    // With other access than that of calls, a completion would end their instance.
    let has_less = request.method == Method::Complete && (config.confirm.is_some() || config.grants.roots.is_given());
    if sharing == Sharing::None || sharing == Sharing::One && has_less {
        return None;
    }
    let owner = Some(ctx.owner()).filter(Owner::is_one_client)?;
    let lasts = (sharing == Sharing::One).then(|| ctx.lasts()).flatten();
    Some(Box::new(Client { key: owner.key(), in_one: sharing == Sharing::One, lasts }))
}

/// Reports to the operator and in the record how a run ended, and returns its outcome.
async fn finished<T>(
    ctx: &Context,
    request: &Request<'_>,
    roots: &CallRoots,
    record: Recording,
    mut report: Report<T>,
) -> Result<(T, Hints), Failed> {
    let served = request.served;
    let id = &served.config.id;
    ctx.hold_answer(report.held.take());
    let ended = match &report.result {
        Ok(_) if report.bytes.is_none() => Ended::Asked,
        Ok(_) if report.says_failed => Ended::Failed,
        Ok(_) => Ended::Done,
        Err(error) => error.into(),
    };
    let recorded = record.end(ended, &report).await;
    let failed = !matches!(ended, Ended::Done | Ended::Asked);
    let hints = hints(ctx, request, roots, (&report.denials, failed));
    if !report.printed.is_empty() {
        let printed = served.config.settings.redacted(&report.printed);
        if let Some(rehearsal) = ctx.server.scopes.rehearsal() {
            (rehearsal.printed)(&printed);
        }
        tracing::debug!(plugin = id, "printed: {}", escaped(&printed));
    }
    require_record(recorded)?;
    match report.result {
        Ok(outcome) => Ok((outcome, hints)),
        Err(CallError::Failed(failure)) => {
            let error = converted(ctx, served, &failure, |failure, paid| Ok(bridge::failure_error(failure, paid)));
            Err(match Box::pin(error).await? {
                Some(error) => Failed { why: Why::Failed, said: Said::Rpc(error) },
                None => {
                    let said = clean(&failure.message);
                    Failed::new(Why::Failed, join(&said, &hints.about([said.as_str()])))
                }
            })
        }
        Err(error) => {
            let detail = match &error {
                CallError::Trap { detail, .. } => escaped(&served.config.settings.redacted(detail)),
                _ => String::new(),
            };
            let took = report.took.as_millis();
            tracing::warn!(
                plugin = id,
                took_ms = took,
                printed = escaped(&served.config.settings.redacted(&report.printed)),
                detail,
                "a call failed: {error}"
            );
            let said = match &error {
                CallError::Trap { .. } if ctx.is_operator() => {
                    panicked(&served.config.settings.redacted(&report.printed))
                }
                _ => None,
            };
            let why = said.unwrap_or_else(|| clean(&error.to_string()).to_string());
            let text = format!("The plugin `{id}` did not finish: {why}.");
            Err(Failed::new(Why::Failed, join(&text, &hints.about(["directory"]))))
        }
    }
}

/// Returns the message and the place of the panic of a plugin in Rust, which it prints before it stops. Only the user who started this
/// process gets it: the message may contain anything that the plugin knows.
fn panicked(printed: &str) -> Option<String> {
    let (_, after) = printed.rsplit_once("panicked at ")?;
    let (place, message) = after.split_once('\n')?;
    let message: Vec<&str> = message.lines().take_while(|line| !line.starts_with("note: ")).collect();
    let message = clip(message.join(" ").trim());
    Some(escaped(&format!("it crashed: it panicked at {}: {message}", place.trim_end_matches(':'))))
}

/// Reports to the operator and in the record that a call was stopped, and returns what the client learns.
async fn stopped(id: &str, record: Recording, lost: Lost) -> Failed {
    tracing::info!(plugin = id, "stopped a call {}", lost.logged());
    match require_record(record.stop(Ended::Revoked).await) {
        Ok(()) => Failed::new(Why::Revoked, lost.said(id)),
        Err(failed) => failed,
    }
}

/// Takes the two places that one run of a task needs: one of the plugin's, and one of all plugins'.
async fn turns(ctx: &Context, served: &Served) -> [Place; 2] {
    [served.tasks.wait(ctx.party()).await, ctx.server.tasks.turn(ctx.party()).await]
}

/// What was taken away during a call.
enum Lost {
    Access,
    Roles,
    Key,
    Root,
    Directory,
}

impl Lost {
    fn logged(&self) -> &'static str {
        match self {
            Self::Access => "whose access was taken away",
            Self::Roles => "that its caller's roles do not allow any more",
            Self::Key => "that its caller's API key does not allow any more",
            Self::Directory => "whose directory now contains a file that wharf runs, obeys or keeps secret",
            Self::Root => "whose root was closed",
        }
    }

    fn said(&self, id: &str) -> String {
        match self {
            Self::Access => format!("The operator took away access of the plugin `{id}` during this call."),
            Self::Roles => "The operator took away the role that allowed this call.".into(),
            Self::Key => "The operator took away the API key of this call.".into(),
            Self::Root => "A root that the call was using was closed.".into(),
            Self::Directory => {
                "A directory that the call was using is not open in the same way any more, because a file that wharf runs, obeys or keeps \
                 secret is in it now; call again to use it as it is open now."
                    .into()
            }
        }
    }
}

/// Whether the roles of the config still give the caller what the call was admitted with.
fn roles_give(config: &Config, identity: &Arc<Identity>, request: &Request<'_>, passed: &Passed) -> bool {
    config.roles.still_give(identity, passed.rights.as_ref(), &request.entry, !passed.roots.all.is_empty())
}

/// Returns what was taken away since the call was admitted.
fn already_lost(ctx: &Context, request: &Request<'_>, passed: &Passed, held: &Held) -> Option<Lost> {
    if request.served.access.is_revoked() {
        return Some(Lost::Access);
    }
    if ctx.server.scopes.has_lost(held) {
        return Some(Lost::Directory);
    }
    let identity = ctx.caller().identity()?;
    if !roles_give(&ctx.server.config.borrow(), identity, request, passed) {
        return Some(Lost::Roles);
    }
    ctx.server.is_key_revoked(identity).then_some(Lost::Key)
}

/// Waits until something that the call uses is taken away. `owner`: the session whose client can close the call's roots.
async fn lost(
    ctx: &Context,
    request: &Request<'_>,
    passed: &Passed,
    (owner, held): (Option<&Arc<Session>>, &Held),
) -> Lost {
    let identity = ctx.caller().identity();
    let mut config = ctx.server.config.clone();
    let roles = async {
        let Some(identity) = identity else { return std::future::pending().await };
        // The config's sender is gone, so the config cannot change any more.
        if config.wait_for(|now| !roles_give(now, identity, request, passed)).await.is_err() {
            std::future::pending().await
        }
    };
    let key = async {
        match identity {
            Some(identity) => ctx.server.key_revoked(identity).await,
            None => std::future::pending().await,
        }
    };
    let closed = async {
        match owner {
            Some(session) => session.lost(&ctx.server, &ctx.outbox, ctx.party(), &passed.roots).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        () = request.served.access.revoked() => Lost::Access,
        () = roles => Lost::Roles,
        () = key => Lost::Key,
        () = closed => Lost::Root,
        () = ctx.server.scopes.lost(held) => Lost::Directory,
    }
}

/// Withholds the answer of a call that could not be recorded.
fn require_record(recorded: Result<(), Unrecorded>) -> Result<(), Failed> {
    recorded.map_err(|unrecorded| {
        Failed::new(Why::Refused, format!("The call was run, but its answer is withheld: {unrecorded}."))
    })
}

fn join(text: &str, hints: &str) -> String {
    if hints.is_empty() { text.to_owned() } else { format!("{text}\n{hints}") }
}

/// What a client may know about what was refused in a call. Boxed, so that the futures of calls stay small.
pub struct Hints(Option<Box<Refused>>);

#[derive(Default)]
struct Refused {
    said: String,
    /// Says why no folder was writable, if that was due to what the tool says about itself.
    reading: String,
    /// The arguments of the call, in lower case, if one of the above or below needs them.
    sent: String,
    /// The variables that the plugin wants and does not see, each with what would change that.
    variables: Vec<(String, String)>,
    /// Says that no directory is open and why, and whether the plugin asked for directories itself.
    directory: Option<(String, bool)>,
}

impl Hints {
    /// Returns what explains an error. `error`: its texts. Runtimes ask for directories at their start, so that alone explains no error.
    pub fn about<'a>(&self, error: impl IntoIterator<Item = &'a str>) -> String {
        let Some(refused) = &self.0 else { return String::new() };
        let error: Vec<&str> = error.into_iter().collect();
        let says = |means: fn(&str) -> bool| error.iter().any(|text| means(text));
        // An error may repeat what the client sent.
        let is_sent = |word: &str| refused.sent.contains(&word.to_ascii_lowercase());
        let directory = refused.directory.as_ref().filter(|(_, asked)| *asked || says(means_files));
        let about_rights = says(means_rights) && !RIGHTS.iter().any(|word| is_sent(word));
        let reading = about_rights.then_some(refused.reading.as_str());
        let variables =
            refused.variables.iter().filter(|(name, _)| !is_sent(name) && error.iter().any(|text| names(text, name)));
        let all = [Some(refused.said.as_str()), directory.map(|(said, _)| said.as_str()), reading];
        let all = all.into_iter().chain(variables.map(|(_, said)| Some(said.as_str())));
        all.flatten().filter(|said| !said.is_empty()).collect::<Vec<_>>().join("\n")
    }
}

/// Whether an error is about files. Without a directory, they do not exist.
fn means_files(error: &str) -> bool {
    const WORDS: [&str; 8] = ["file", "files", "folder", "folders", "directory", "directories", "path", "enoent"];
    let mut words = error.split(|character: char| !character.is_ascii_alphanumeric());
    words.any(|word| WORDS.iter().any(|known| word.eq_ignore_ascii_case(known)))
}

/// The words of errors about what the plugin may do with files.
const RIGHTS: [&str; 7] = ["read-only", "permission", "permitted", "denied", "erofs", "eacces", "eperm"];

fn means_rights(error: &str) -> bool {
    let error = error.to_ascii_lowercase();
    RIGHTS.iter().any(|word| error.contains(word))
}

/// Whether an error names a variable.
fn names(error: &str, variable: &str) -> bool {
    error.split(|character: char| !(character.is_ascii_alphanumeric() || character == '_')).any(|word| word == variable)
}

/// Returns the variables that a plugin wants and does not see, each with what would change that.
fn variables(ctx: &Context, served: &Served) -> Vec<(String, String)> {
    let (config, by) = (&served.config, served.config.granted_by());
    let wanted = served.wants.iter().flat_map(|wants| &wants.grants).filter_map(|want| match &want.what {
        WantedGrant::Env(name) if !want.what.is_granted(&config.grants) => Some(name.as_str()),
        _ => None,
    });
    let lacking = wanted.map(|name| {
        let table = hint::Table::Grants.header(&config.id);
        let way = match by {
            hint::By::Flag => format!("`--allow env={name}`"),
            hint::By::Config => format!("`env = [\"{name}\"]` in {table}"),
        };
        let name = clean(name);
        (name.to_string(), format!("The operator of this server can grant the variable `{name}` with {}.", clean(&way)))
    });
    let unset = config.grants.env.0.iter().filter(|name| ctx.server.scopes.is_unset(name));
    let unset = unset
        .map(|name| (name.clone(), format!("The variable `{name}` is granted, but wharf was started without it.")));
    lacking.chain(unset).collect()
}

/// Logs for the operator what was refused, and returns what the client may know about it. `failed`: whether the call did.
fn hints(ctx: &Context, request: &Request<'_>, roots: &CallRoots, (denials, failed): (&[Denial], bool)) -> Hints {
    let served = request.served;
    // Other clients could find out by it which variables there are.
    let variables = if failed && ctx.is_operator() { variables(ctx, served) } else { Vec::new() };
    let reading = (failed && confirm::only_reads(request)).then(|| {
        format!(
            "`{}` says that it only reads, so `confirm` let it run without a question, and without a folder that it can write to.",
            request.name
        )
    });
    if denials.is_empty() && reading.is_none() && variables.is_empty() {
        return Hints(None);
    }
    let (id, by) = (&served.config.id, served.config.granted_by());
    // What an existing server runs in asks for folders in each of its calls.
    let is_existing = served.plugin.code().sections().keeps_state;
    let means_it =
        |denial: &&Denial| !is_existing || served.means_folders() || !matches!(denial, Denial::NoDirectory { .. });
    for denial in denials.iter().filter(means_it) {
        ctx.server.hint(id, hint::hint(denial, by, escaped));
    }
    let asked = denials.iter().filter_map(|denial| match denial {
        Denial::NoDirectory { asked } if *asked || served.means_folders() => Some(*asked && !is_existing),
        Denial::NoDirectory { .. } | Denial::Http(_) => None,
    });
    let directory = asked.max().map(|asked| (format!("No directory is open: {}.", roots.explained()), asked));
    let is_compared = reading.is_some() || !variables.is_empty();
    let sent = if is_compared { request.arguments.value().to_string().to_ascii_lowercase() } else { String::new() };
    let said = hint::for_client(denials, id, by, clean);
    Hints(Some(Box::new(Refused { said, reading: reading.unwrap_or_default(), sent, variables, directory })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_about_directories_explains_only_errors_about_files() {
        let directory = |asked| Some(("No directory is open.".to_owned(), asked));
        let hints = |asked| Hints(Some(Box::new(Refused { directory: directory(asked), ..Refused::default() })));
        for (error, expected) in [
            ("Error executing tool boom: bad thing: é", false),
            ("the profile is empty", false),
            ("[Errno 44] No such file or directory: '/notes'", true),
            ("ENOENT: open '/notes'", true),
            ("The folder of notes cannot be read.", true),
            ("the path /a does not exist", true),
        ] {
            assert_eq!(!hints(false).about([error]).is_empty(), expected, "{error}");
            assert!(!hints(true).about([error]).is_empty(), "{error}");
        }
    }

    #[test]
    fn a_variable_is_named_to_whom_an_error_names_it() {
        let variables = vec![("API_KEY".into(), "It is not granted.".into())];
        let hints = Hints(Some(Box::new(Refused { variables, ..Refused::default() })));
        for (error, expected) in [
            ("The server did not start: KeyError: 'API_KEY' (server.py:5)", true),
            ("set $API_KEY", true),
            ("set MY_API_KEY", false),
            ("set API_KEY2 or api_key", false),
        ] {
            assert_eq!(!hints.about([error]).is_empty(), expected, "{error}");
        }
        let variables = vec![("API_KEY".into(), "It is not granted.".into())];
        let guessed = Refused { variables, sent: r#"{"path":"api_key"}"#.into(), ..Refused::default() };
        assert_eq!(Hints(Some(Box::new(guessed))).about(["API_KEY does not exist"]), "");
    }

    #[test]
    fn that_a_tool_only_reads_explains_only_errors_about_rights() {
        let hints = Hints(Some(Box::new(Refused { reading: "It only reads.".into(), ..Refused::default() })));
        for (error, expected) in [
            ("a.txt: Read-only file system (os error 69)", true),
            ("EROFS: read-only file system, open '/a'", true),
            ("[Errno 13] Permission denied: '/a'", true),
            ("a.txt: Operation not permitted", true),
            ("a.txt: No such file or directory", false),
            ("no city has this name", false),
        ] {
            assert_eq!(!hints.about([error]).is_empty(), expected, "{error}");
        }
    }

    #[test]
    fn a_panic_is_told_with_its_place() {
        let printed = "before\n\nthread '<unnamed>' (1) panicked at src/lib.rs:15:9:\nno tea\nleft\nnote: run with `RUST_BACKTRACE=1`";
        assert_eq!(panicked(printed).unwrap(), "it crashed: it panicked at src/lib.rs:15:9: no tea left");
        assert_eq!(
            panicked("panicked at a.rs:1:1:\n\u{1b}[31m").unwrap(),
            "it crashed: it panicked at a.rs:1:1: \\u{1b}[31m"
        );
        assert_eq!(panicked("it only printed this"), None);
    }
}
