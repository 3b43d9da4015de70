//! The requests that a client can make. Code that handles them matches on every variant, so that the compiler reports each place that has
//! to change when a method is added.

use crate::revision::{Era, Revision};

/// A request of a client, by its method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    /// Begins a legacy session.
    Initialize,
    /// Checks whether the other side responds; legacy.
    Ping,
    /// Asks which modern revisions are served, and for the server's capabilities.
    Discover,
    /// Lists the tools, a page at a time.
    ListTools,
    /// Calls a tool.
    CallTool,
    /// Lists the resources, a page at a time.
    ListResources,
    /// Lists the templates of resources, a page at a time.
    ListTemplates,
    /// Reads a resource.
    ReadResource,
    /// Subscribes to changes of a resource; legacy.
    Subscribe,
    /// Ends a subscription to a resource; legacy.
    Unsubscribe,
    /// Lists the prompts, a page at a time.
    ListPrompts,
    /// Fills in a prompt.
    GetPrompt,
    /// Asks for suggestions for an argument that a person is typing.
    Complete,
    /// Sets the lowest level of log messages that the session receives; legacy.
    SetLevel,
    /// Subscribes to changes for as long as the request is open; modern.
    Listen,
    /// Asks for the status of a task.
    GetTask,
    /// Asks to stop a task.
    CancelTask,
    /// Answers the questions of a task; modern.
    UpdateTask,
    /// Waits for the result of a task; legacy.
    TaskResult,
    /// Lists the client's tasks; legacy.
    ListTasks,
}

impl Method {
    const ALL: [Self; 20] = [
        Self::Initialize,
        Self::Ping,
        Self::Discover,
        Self::ListTools,
        Self::CallTool,
        Self::ListResources,
        Self::ListTemplates,
        Self::ReadResource,
        Self::Subscribe,
        Self::Unsubscribe,
        Self::ListPrompts,
        Self::GetPrompt,
        Self::Complete,
        Self::SetLevel,
        Self::Listen,
        Self::GetTask,
        Self::CancelTask,
        Self::UpdateTask,
        Self::TaskResult,
        Self::ListTasks,
    ];

    /// Returns the name of the method in messages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Initialize => "initialize",
            Self::Ping => "ping",
            Self::Discover => "server/discover",
            Self::ListTools => "tools/list",
            Self::CallTool => "tools/call",
            Self::ListResources => "resources/list",
            Self::ListTemplates => "resources/templates/list",
            Self::ReadResource => "resources/read",
            Self::Subscribe => "resources/subscribe",
            Self::Unsubscribe => "resources/unsubscribe",
            Self::ListPrompts => "prompts/list",
            Self::GetPrompt => "prompts/get",
            Self::Complete => "completion/complete",
            Self::SetLevel => "logging/setLevel",
            Self::Listen => "subscriptions/listen",
            Self::GetTask => "tasks/get",
            Self::CancelTask => "tasks/cancel",
            Self::UpdateTask => "tasks/update",
            Self::TaskResult => "tasks/result",
            Self::ListTasks => "tasks/list",
        }
    }

    /// Returns the method with this name in any revision.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.as_str() == text)
    }

    /// Whether a revision has this method.
    pub fn is_in(self, revision: Revision) -> bool {
        let era = revision.era();
        let tasks = revision >= Revision::V2025_11_25;
        match self {
            Self::ListTools
            | Self::CallTool
            | Self::ListResources
            | Self::ListTemplates
            | Self::ReadResource
            | Self::ListPrompts
            | Self::GetPrompt
            | Self::Complete => true,
            Self::Initialize | Self::Ping | Self::SetLevel | Self::Subscribe | Self::Unsubscribe => era == Era::Legacy,
            Self::Discover | Self::Listen => era == Era::Modern,
            Self::GetTask | Self::CancelTask => tasks,
            Self::UpdateTask => tasks && era == Era::Modern,
            Self::TaskResult | Self::ListTasks => tasks && era == Era::Legacy,
        }
    }

    /// Returns the name of the parameter that identifies the request's tool, prompt, resource or task. Over HTTP, modern requests repeat
    /// its value in the header `Mcp-Name`.
    pub const fn name_member(self) -> Option<&'static str> {
        match self {
            Self::CallTool | Self::GetPrompt => Some("name"),
            Self::ReadResource => Some("uri"),
            Self::GetTask | Self::UpdateTask | Self::CancelTask => Some("taskId"),
            Self::Initialize
            | Self::Ping
            | Self::Discover
            | Self::ListTools
            | Self::ListResources
            | Self::ListTemplates
            | Self::Subscribe
            | Self::Unsubscribe
            | Self::ListPrompts
            | Self::Complete
            | Self::SetLevel
            | Self::Listen
            | Self::TaskResult
            | Self::ListTasks => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_a_name_of_its_own() {
        for method in Method::ALL {
            assert_eq!(Method::parse(method.as_str()), Some(method));
        }
        assert_eq!(Method::parse("tools/List"), None);
        assert_eq!(Method::parse(""), None);
    }

    #[test]
    fn revisions_have_what_they_say() {
        for (revision, count) in [
            (Revision::V2024_11_05, 13),
            (Revision::V2025_03_26, 13),
            (Revision::V2025_06_18, 13),
            (Revision::V2025_11_25, 17),
            (Revision::V2026_07_28, 13),
        ] {
            assert_eq!(Method::ALL.into_iter().filter(|method| method.is_in(revision)).count(), count, "{revision:?}");
        }
        assert!(!Method::Initialize.is_in(Revision::V2026_07_28));
        assert!(!Method::UpdateTask.is_in(Revision::V2025_11_25));
    }
}
