//! The export `tools` of a component. The type of its function `call-tool` is checked once for each component and not in every call: the
//! check compares all records and variants that the function takes and returns, which took a tenth of the time of a short call's sandbox.

use std::sync::atomic::{AtomicBool, Ordering};

use wasmtime::{
    AsContextMut, StoreContextMut,
    component::{Component, ComponentExportIndex, Func, Instance, InstancePre, TypedFunc},
};

use crate::{
    bindings::{tools, types},
    wasi::store::State,
};

type Arguments<'a> = (&'a str, &'a str, &'a types::Context);
type Returned = (Result<tools::ToolOutcome, types::Failure>,);

/// The indices of the export's functions.
pub(crate) struct ToolsExport {
    /// For the list of tools.
    pub(crate) list: tools::GuestIndices,
    call: ComponentExportIndex,
    /// Whether the type of `call-tool` was checked.
    checked: AtomicBool,
}

/// The function `call-tool` of an instance, whose type was checked.
#[derive(Clone, Copy)]
pub(crate) struct CallToolExport(Func);

impl ToolsExport {
    /// Looks the functions up. `interface`: the name of the export.
    pub(crate) fn new(component: &Component, pre: &InstancePre<State>, interface: &str) -> wasmtime::Result<Self> {
        let list = tools::GuestIndices::new(pre)?;
        let export = component.get_export_index(None, interface);
        let call = export.and_then(|export| component.get_export_index(Some(&export), "call-tool"));
        let call = call.ok_or_else(|| wasmtime::format_err!("{interface} has no function `call-tool`"))?;
        Ok(Self { list, call, checked: AtomicBool::new(false) })
    }

    /// Returns the function of an instance. Fails for an instance of another component, and if the function has another type.
    pub(crate) fn call_tool(
        &self,
        mut store: StoreContextMut<'_, State>,
        instance: &Instance,
    ) -> wasmtime::Result<CallToolExport> {
        if !self.checked.load(Ordering::Acquire) {
            let function = *instance.get_typed_func::<Arguments<'_>, Returned>(&mut store, &self.call)?.func();
            self.checked.store(true, Ordering::Release);
            return Ok(CallToolExport(function));
        }
        let function = instance.get_func(&mut store, self.call);
        function.map(CallToolExport).ok_or_else(|| wasmtime::format_err!("the component has no function `call-tool`"))
    }
}

impl CallToolExport {
    /// Calls the function.
    pub(crate) async fn call(
        self,
        store: impl AsContextMut<Data = State>,
        arguments: Arguments<'_>,
    ) -> wasmtime::Result<Result<tools::ToolOutcome, types::Failure>> {
        // SAFETY: `ToolsExport::call_tool`, which alone makes values of this type, has checked the type of this function of this component:
        // an index finds nothing in the instances of other components.
        let function = unsafe { TypedFunc::<Arguments<'_>, Returned>::new_unchecked(self.0) };
        let (returned,) = function.call_async(store, arguments).await?;
        Ok(returned)
    }
}
