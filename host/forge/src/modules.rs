//! Replaces core modules in a component, wherever they are nested in it.

use wasmparser::{Parser, Payload};

use crate::{
    encode::{self, COMPONENT, CORE_MODULE},
    link,
};

/// Returns the component with each core module replaced by what `module` makes of it. `None` of it: the module stays. `None`: the component
/// cannot be read, or is nested deeper than this.
pub fn replaced(component: &[u8], nesting: usize, module: &mut dyn FnMut(&[u8]) -> Option<Vec<u8>>) -> Option<Vec<u8>> {
    let mut out = component.get(..8)?.to_vec();
    let mut depth = 0_usize;
    for payload in Parser::new(0).parse_all(component) {
        let payload = payload.ok()?;
        if let (1, Some((id, range))) = (depth, payload.as_section()) {
            let contents = component.get(link::range(range)?)?;
            let new = match id {
                CORE_MODULE => module(contents),
                COMPONENT => Some(replaced(contents, nesting.checked_sub(1)?, module)?),
                _ => None,
            };
            encode::section(&mut out, id, new.as_deref().unwrap_or(contents));
        }
        match payload {
            Payload::Version { .. } => depth += 1,
            Payload::End(_) => depth = depth.checked_sub(1)?,
            _ => {}
        }
    }
    Some(out)
}
