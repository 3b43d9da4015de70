//! A linked component, and the interfaces of the contract that it exports.

use wasmtime::component::{Component, InstancePre};

use crate::{
    adapter::Foreign,
    bindings::{completions, prompts, resources},
    bounds::limits::{PAGE_BYTES, TABLE_ELEMENT_BYTES},
    compile::child::Artifact,
    file::load_error::LoadError,
    wasi::{store::State, tools_export::ToolsExport},
};
use wharf_scope::MemoryLimit;

/// The package of the contract, and the prefix of the versions that wharf supports.
pub(crate) const PACKAGE: &str = "wharf:plugin/";
pub(crate) const VERSION: &str = "0.1.";

/// Which interfaces of the contract a component exports; none if it was not made for wharf.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Exports {
    /// It has tools to call.
    pub tools: bool,
    /// It has resources to read.
    pub resources: bool,
    /// It has prompts to fill in.
    pub prompts: bool,
    /// It suggests values for arguments.
    pub completions: bool,
}

/// A linked component, from which instances are created.
pub struct Linked {
    pub(crate) pre: InstancePre<State>,
    pub(crate) tools: Option<ToolsExport>,
    pub(crate) resources: Option<resources::GuestIndices>,
    pub(crate) prompts: Option<prompts::GuestIndices>,
    pub(crate) completions: Option<completions::GuestIndices>,
    /// Its other exports, if it exports nothing of the contract.
    pub(crate) foreign: Foreign,
    /// The number of bytes that the host allocates for each instance in addition to its memory.
    pub(crate) instance_bytes: usize,
    /// The number of bytes of memory and tables that each instance has at least when it starts.
    pub(crate) start_bytes: usize,
    /// How many of them the component does not know of.
    room_bytes: usize,
}

/// Returns the size of the largest memory and of the largest table that an instance starts with.
fn start_bytes(component: &Component) -> usize {
    let required = component.resources_required();
    let size = |count: Option<u64>| usize::try_from(count.unwrap_or(0)).unwrap_or(usize::MAX);
    let pages = size(required.as_ref().and_then(|required| required.max_initial_memory_size));
    let elements = size(required.as_ref().and_then(|required| required.max_initial_table_size));
    pages.saturating_mul(PAGE_BYTES).saturating_add(elements.saturating_mul(TABLE_ELEMENT_BYTES))
}

impl Linked {
    pub(crate) fn new(component: &Component, pre: InstancePre<State>, artifact: &Artifact) -> Result<Self, LoadError> {
        let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let name = |interface: &str| format!("{PACKAGE}{interface}@{VERSION}0");
        let has = |interface: &str| component.get_export_index(None, name(interface)).is_some();
        let wrong = |interface: &str| LoadError::WrongType(format!("{PACKAGE}{interface}"));
        let mut linked = Self {
            tools: has("tools")
                .then(|| ToolsExport::new(component, &pre, &name("tools")))
                .transpose()
                .map_err(|_| wrong("tools"))?,
            resources: has("resources")
                .then(|| resources::GuestIndices::new(&pre))
                .transpose()
                .map_err(|_| wrong("resources"))?,
            prompts: has("prompts")
                .then(|| prompts::GuestIndices::new(&pre))
                .transpose()
                .map_err(|_| wrong("prompts"))?,
            completions: has("completions")
                .then(|| completions::GuestIndices::new(&pre))
                .transpose()
                .map_err(|_| wrong("completions"))?,
            foreign: Foreign::default(),
            pre,
            instance_bytes: bytes(artifact.instance_bytes),
            start_bytes: start_bytes(component),
            room_bytes: bytes(artifact.room_bytes),
        };
        if linked.exports() == Exports::default() {
            linked.foreign = Foreign::of(component, artifact.sections.docs.as_deref())?;
        }
        Ok(linked)
    }

    /// Returns how much memory an instance may use. A limit within which it could start without its room is raised by the room if it could
    /// not start otherwise.
    pub(crate) fn memory_bytes(&self, limit: MemoryLimit) -> usize {
        let start = self.start_bytes.saturating_add(self.instance_bytes);
        let limit = limit.bytes(self.start_bytes.saturating_sub(self.room_bytes));
        let raised = limit.saturating_add(self.room_bytes);
        if limit < start && start <= raised { raised } else { limit }
    }

    pub(crate) fn exports(&self) -> Exports {
        Exports {
            tools: self.tools.is_some(),
            resources: self.resources.is_some(),
            prompts: self.prompts.is_some(),
            completions: self.completions.is_some(),
        }
    }
}
