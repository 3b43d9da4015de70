//! Calls that the embedding program makes itself.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use serde::Serialize;
use wharf_protocol::{
    model as mcp,
    params::{self, CompleteArgument, CompleteContext, Reference},
};

use crate::{
    error::{Error, ErrorKind},
    model::{Completion, Prompt, PromptResult, ReadResult, Resource, ResourceTemplate, Tool, ToolResult},
    wharf::Wharf,
};
use wharf_base::principal::Principal;
use wharf_plugins::plugins::lists::{List, Listed};
use wharf_policy::access::call_roots::Folder;
use wharf_serve::methods::call::{
    Failed,
    direct::{self, Direct},
};

/// A call that the program makes itself, without a client. By default it is made as the process, opens the operator's roots, and takes as
/// long as the plugin's limits allow.
///
/// ```no_run
/// # async fn call(wharf: wharf_app::Wharf) -> Result<(), wharf_app::Error> {
/// use wharf_app::Call;
///
/// let arguments = serde_json::json!({ "path": "/home/ann/notes.txt" });
/// let call = Call::tool("files_read_text_file").arguments(arguments).as_principal("ann").roots(["/home/ann"]);
/// let result = wharf.call(call).await?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Call<Target = ToolCall> {
    target: Target,
    principal: Principal,
    roots: Vec<PathBuf>,
    timeout: Option<Duration>,
    approved: bool,
}

/// A tool and its arguments, as part of a [`Call`].
#[derive(Debug)]
pub struct ToolCall {
    name: String,
    arguments: Option<serde_json::Result<String>>,
}

/// The URI of a resource, as part of a [`Call`].
#[derive(Debug)]
pub struct ResourceRead {
    uri: String,
}

/// A prompt and its arguments, as part of a [`Call`].
#[derive(Debug)]
pub struct PromptGet {
    name: String,
    arguments: BTreeMap<String, String>,
}

/// An argument whose values are wanted, as part of a [`Call`].
#[derive(Debug)]
pub struct ArgumentCompletion {
    of: Reference,
    argument: String,
    typed: String,
    chosen: BTreeMap<String, String>,
}

impl<Target> Call<Target> {
    fn of(target: Target) -> Self {
        Self { target, principal: Principal::Process, roots: Vec::new(), timeout: None, approved: false }
    }

    /// Makes the call as this principal: approvals that are remembered, reused instances and shares of the limits are those of the
    /// principal. A text is the name of a client of this program.
    #[must_use]
    pub fn as_principal(mut self, principal: impl Into<Principal>) -> Self {
        self.principal = principal.into();
        self
    }

    /// Opens these folders to the plugin, in place of the operator's roots, if the plugin has a grant of roots.
    #[must_use]
    pub fn roots(mut self, folders: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        self.roots.extend(folders.into_iter().map(Into::into));
        self
    }

    /// Ends the call after this time, if the plugin's own limit does not end it earlier.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Says whether a person has approved the call. If the config wants approval, a call without it is not made. The
    /// approver of the program is asked either way.
    #[must_use]
    pub fn approved(mut self, approved: bool) -> Self {
        self.approved = approved;
        self
    }
}

impl Call<ToolCall> {
    /// A call of a tool, by the name that clients know.
    pub fn tool(name: impl Into<String>) -> Self {
        Self::of(ToolCall { name: name.into(), arguments: None })
    }

    /// Sets the arguments: anything that serialises to a JSON object. An error of the serialisation ends the call.
    #[must_use]
    pub fn arguments(mut self, arguments: impl Serialize) -> Self {
        self.target.arguments = Some(serde_json::to_string(&arguments));
        self
    }
}

impl Call<ResourceRead> {
    /// A read of a resource.
    pub fn resource(uri: impl Into<String>) -> Self {
        Self::of(ResourceRead { uri: uri.into() })
    }
}

impl Call<PromptGet> {
    /// A request for a prompt, by the name that clients know.
    pub fn prompt(name: impl Into<String>) -> Self {
        Self::of(PromptGet { name: name.into(), arguments: BTreeMap::new() })
    }

    /// Sets one argument.
    #[must_use]
    pub fn argument(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.target.arguments.insert(name.into(), value.into());
        self
    }
}

impl Call<ArgumentCompletion> {
    /// A request for values of an argument of a prompt. `typed`: the beginning of the value.
    pub fn prompt_argument(prompt: impl Into<String>, argument: impl Into<String>, typed: impl Into<String>) -> Self {
        Self::completion(Reference::Prompt { name: prompt.into() }, argument.into(), typed.into())
    }

    /// A request for values of a variable of a resource template. `typed`: the beginning of the value.
    pub fn template_variable(
        template: impl Into<String>,
        variable: impl Into<String>,
        typed: impl Into<String>,
    ) -> Self {
        Self::completion(Reference::Resource { uri: template.into() }, variable.into(), typed.into())
    }

    fn completion(of: Reference, argument: String, typed: String) -> Self {
        Self::of(ArgumentCompletion { of, argument, typed, chosen: BTreeMap::new() })
    }

    /// Adds an argument whose value has been chosen already.
    #[must_use]
    pub fn chosen(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.target.chosen.insert(name.into(), value.into());
        self
    }
}

impl From<&str> for Call<ToolCall> {
    fn from(name: &str) -> Self {
        Self::tool(name)
    }
}

impl From<&str> for Call<ResourceRead> {
    fn from(uri: &str) -> Self {
        Self::resource(uri)
    }
}

impl From<&str> for Call<PromptGet> {
    fn from(name: &str) -> Self {
        Self::prompt(name)
    }
}

/// Calls and lists. They follow the same rules as the requests of clients, and are recorded in the same way.
impl Wharf {
    /// Calls a tool.
    ///
    /// # Errors
    /// If the call cannot be made, or is ended by wharf: [`Error::kind`] says why. A tool that ran and failed is not an error: see
    /// [`ToolResult::is_error`].
    pub async fn call(&self, call: impl Into<Call<ToolCall>>) -> Result<ToolResult, Error> {
        self.call_tool(call.into()).await.map(Into::into)
    }

    pub(crate) async fn call_tool(&self, call: Call<ToolCall>) -> Result<mcp::ToolResult, Error> {
        let ToolCall { name, arguments } = call.target;
        let arguments = arguments.transpose().map_err(|error| {
            Error::arguments(None, format!("the arguments of `{name}` cannot be written as JSON: {error}"))
        })?;
        let direct = self.direct(call.principal, &call.roots, call.approved)?;
        let work = direct.call(&self.inner.server, name.clone(), arguments);
        within(call.timeout, &name, work).await
    }

    /// Reads a resource.
    ///
    /// # Errors
    /// If the resource cannot be read: [`Error::kind`] says why.
    pub async fn read(&self, call: impl Into<Call<ResourceRead>>) -> Result<ReadResult, Error> {
        let call = call.into();
        let direct = self.direct(call.principal, &call.roots, call.approved)?;
        let uri = &call.target.uri;
        within(call.timeout, uri, direct.read(&self.inner.server, uri)).await.map(Into::into)
    }

    /// Gets a prompt.
    ///
    /// # Errors
    /// If there is no such prompt, or it cannot be made from the arguments: [`Error::kind`] says why.
    pub async fn prompt(&self, call: impl Into<Call<PromptGet>>) -> Result<PromptResult, Error> {
        let call = call.into();
        let direct = self.direct(call.principal, &call.roots, call.approved)?;
        let PromptGet { name, arguments } = call.target;
        let work = direct.prompt(&self.inner.server, params::GetPrompt::new(name.clone(), arguments));
        within(call.timeout, &name, work).await.map(Into::into)
    }

    /// Returns values that an argument of a prompt, or a variable of a resource template, may have.
    ///
    /// # Errors
    /// If there is no such prompt or template, or its plugin fails: [`Error::kind`] says why.
    pub async fn complete(&self, call: Call<ArgumentCompletion>) -> Result<Completion, Error> {
        let direct = self.direct(call.principal, &call.roots, call.approved)?;
        let ArgumentCompletion { of, argument, typed, chosen } = call.target;
        let (Reference::Prompt { name } | Reference::Resource { uri: name }) = &of;
        let name = name.clone();
        let params = params::Complete {
            reference: of,
            argument: CompleteArgument { name: argument, value: typed },
            context: Some(CompleteContext { arguments: Some(chosen) }),
        };
        within(call.timeout, &name, direct.complete(&self.inner.server, params)).await.map(Into::into)
    }

    /// Returns the tools that this program can call, in the order in which clients get them. Waits for the first load.
    pub async fn list_tools(&self) -> Vec<Tool> {
        self.list(List::Tools, |one| if let Listed::Tool(one) = one { Some(one.clone().into()) } else { None }).await
    }

    /// Returns the resources that this program can read. Waits for the first load.
    pub async fn list_resources(&self) -> Vec<Resource> {
        self.list(List::Resources, |one| if let Listed::Resource(one) = one { Some(one.clone().into()) } else { None })
            .await
    }

    /// Returns the templates of URIs that this program can fill in and read. Waits for the first load.
    pub async fn list_templates(&self) -> Vec<ResourceTemplate> {
        self.list(List::Templates, |one| if let Listed::Template(one) = one { Some(one.clone().into()) } else { None })
            .await
    }

    /// Returns the prompts that this program can get. Waits for the first load.
    pub async fn list_prompts(&self) -> Vec<Prompt> {
        self.list(List::Prompts, |one| if let Listed::Prompt(one) = one { Some(one.clone().into()) } else { None })
            .await
    }

    async fn list<T>(&self, list: List, entry: impl Fn(Listed<'_>) -> Option<T>) -> Vec<T> {
        direct::view(&self.inner.server).await.entries(list).filter_map(entry).collect()
    }

    fn direct(&self, principal: Principal, roots: &[PathBuf], approved: bool) -> Result<Direct, Error> {
        let server = &self.inner.server;
        if server.stop.is_cancelled() {
            return Err(Error::text(ErrorKind::Stopped, "this wharf was stopped".to_owned()));
        }
        let folders: Vec<Folder> = roots.iter().map(|path| Folder { path: path.clone(), shown: None }).collect();
        let roots =
            if folders.is_empty() { None } else { Some(server.scopes.open_given(&folders).map_err(Error::config)?) };
        Ok(Direct { principal, roots, approved })
    }
}

/// Waits for the result of a call, but for at most the time that the program gives it. Dropping the work cancels it.
async fn within<T>(
    limit: Option<Duration>,
    name: &str,
    work: impl Future<Output = Result<T, Failed>>,
) -> Result<T, Error> {
    let ended = match limit {
        Some(limit) => tokio::time::timeout(limit, work).await.map_err(|_| {
            let text = format!("`{name}` was stopped, because it took longer than {} ms", limit.as_millis());
            Error::text(ErrorKind::TimedOut, text)
        })?,
        None => work.await,
    };
    ended.map_err(|failed| Error::of_call(name, failed))
}
