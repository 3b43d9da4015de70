//! The function types of a module that is made.

use std::collections::HashMap;

use wasmparser::FuncType;

use crate::encode;

#[derive(Default)]
pub struct Types {
    numbers: HashMap<FuncType, u32>,
    pub encoded: Vec<Vec<u8>>,
}

impl Types {
    /// Returns the number of a type, which is added if it is a new one. `None`: it refers to another type.
    pub fn number(&mut self, ty: &FuncType) -> Option<u32> {
        if let Some(number) = self.numbers.get(ty) {
            return Some(*number);
        }
        let number = u32::try_from(self.encoded.len()).ok()?;
        self.encoded.push(encode::function_type(ty)?);
        self.numbers.insert(ty.clone(), number);
        Some(number)
    }

    /// Returns the kind and the type of a function, as an import has them.
    pub fn description(&mut self, ty: &FuncType) -> Option<Vec<u8>> {
        Some([vec![0], encode::index(self.number(ty)?)].concat())
    }
}
