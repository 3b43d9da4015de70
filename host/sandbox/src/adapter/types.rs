//! Decodes the types in the signatures of functions, within bounds, or says why a function cannot be served.

use wasmtime::component::{Type, types::ComponentFunc, types::ResourceType};

/// How deep types may be nested. JSON parsers refuse more than 128 levels, and a type takes up to three of them.
const MAX_DEPTH: usize = 32;
/// The maximum number of nodes in the types of one function when all types are written out, and in those of all functions together. Long
/// names count as additional nodes.
const MAX_NODES_OF_FUNCTION: usize = 2_000;
const MAX_NODES_OF_ALL: usize = 40_000;
/// The bytes of a name that count as one node.
const NAME_BYTES_PER_NODE: usize = 16;

/// A type whose values can be represented in JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ty {
    Bool,
    Int(Int),
    F32,
    F64,
    Char,
    String,
    /// A list of `u8`.
    Bytes,
    List(Box<Ty>),
    Record(Vec<(String, Ty)>),
    Tuple(Vec<Ty>),
    Variant(Vec<(String, Option<Ty>)>),
    Enum(Vec<String>),
    Option(Box<Ty>),
    Result(Option<Box<Ty>>, Option<Box<Ty>>),
    Flags(Vec<String>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Int {
    S8,
    U8,
    S16,
    U16,
    S32,
    U32,
    S64,
    U64,
}

impl Ty {
    /// Whether the text of an answer says everything that a value of the type holds.
    pub(crate) fn is_text(&self) -> bool {
        match self {
            Self::String | Self::Enum(_) => true,
            Self::Option(of) => of.is_text(),
            Self::Result(ok, err) => [ok, err].into_iter().flatten().all(|ty| ty.is_text()),
            _ => false,
        }
    }

    /// Whether the type contains flags. Each flag that is set is a string of its own, and takes far more memory than its name has bytes.
    pub(crate) fn has_flags(&self) -> bool {
        match self {
            Self::Flags(_) => true,
            Self::List(of) | Self::Option(of) => of.has_flags(),
            Self::Record(fields) => fields.iter().any(|(_, ty)| ty.has_flags()),
            Self::Tuple(types) => types.iter().any(Self::has_flags),
            Self::Variant(cases) => cases.iter().filter_map(|(_, ty)| ty.as_ref()).any(Self::has_flags),
            Self::Result(ok, err) => [ok, err].into_iter().flatten().any(|ty| ty.has_flags()),
            _ => false,
        }
    }
}

impl Int {
    /// Returns the smallest and the largest value.
    pub(crate) fn bounds(self) -> (i128, i128) {
        match self {
            Self::S8 => (i8::MIN.into(), i8::MAX.into()),
            Self::U8 => (0, u8::MAX.into()),
            Self::S16 => (i16::MIN.into(), i16::MAX.into()),
            Self::U16 => (0, u16::MAX.into()),
            Self::S32 => (i32::MIN.into(), i32::MAX.into()),
            Self::U32 => (0, u32::MAX.into()),
            Self::S64 => (i64::MIN.into(), i64::MAX.into()),
            Self::U64 => (0, u64::MAX.into()),
        }
    }

    /// Whether the type has values that some JSON parsers round.
    pub(crate) fn is_wide(self) -> bool {
        matches!(self, Self::S64 | Self::U64)
    }
}

/// The parameters and the result of a function.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Signature {
    pub(crate) params: Vec<(String, Ty)>,
    pub(crate) result: Option<Ty>,
    /// The approximate number of bytes that it takes in memory.
    pub(crate) bytes: usize,
}

/// Decodes the types of one function after another.
pub(crate) struct Decoder<'a> {
    left: usize,
    left_of_all: usize,
    /// Returns the name of a resource, if it has one.
    resources: &'a dyn Fn(&ResourceType) -> Option<String>,
}

impl<'a> Decoder<'a> {
    pub(crate) fn new(resources: &'a dyn Fn(&ResourceType) -> Option<String>, left_of_all: usize) -> Self {
        Self { left: 0, left_of_all, resources }
    }

    /// Returns the number of nodes that all functions of one component may have.
    pub(crate) fn of_all() -> usize {
        MAX_NODES_OF_ALL
    }

    /// Returns how many of those nodes are left.
    pub(crate) fn left_of_all(&self) -> usize {
        self.left_of_all
    }

    /// Decodes the signature of a function. The error says what in it cannot be represented in JSON.
    pub(crate) fn signature(&mut self, function: &ComponentFunc) -> Result<Signature, String> {
        if function.async_() {
            return Err("it is async".into());
        }
        self.left = MAX_NODES_OF_FUNCTION.min(self.left_of_all);
        let before = self.left;
        let mut params = Vec::new();
        for (name, ty) in function.params() {
            self.spend(name)?;
            let ty = self.ty(&ty, 0).map_err(|why| format!("its parameter `{}` {why}", shown(name)))?;
            params.push((name.to_owned(), ty));
        }
        let result = function.results().next().map(|ty| self.ty(&ty, 0)).transpose();
        let result = result.map_err(|why| format!("its result {why}"))?;
        let spent = before - self.left;
        self.left_of_all -= spent;
        Ok(Signature { params, result, bytes: spent * (size_of::<Ty>() + NAME_BYTES_PER_NODE) })
    }

    fn spend(&mut self, name: &str) -> Result<(), String> {
        self.pay(1 + name.len() / NAME_BYTES_PER_NODE)
    }

    fn pay(&mut self, cost: usize) -> Result<(), String> {
        match self.left.checked_sub(cost) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None if self.left_of_all < MAX_NODES_OF_FUNCTION => {
                Err(format!("is too large: the types of all functions have more than {MAX_NODES_OF_ALL} nodes"))
            }
            None => {
                Err(format!("is too large: the types of the function have more than {MAX_NODES_OF_FUNCTION} nodes"))
            }
        }
    }

    fn names<'n>(&mut self, names: impl Iterator<Item = &'n str>) -> Result<Vec<String>, String> {
        names.map(|name| self.spend(name).map(|()| name.to_owned())).collect()
    }

    fn boxed(&mut self, ty: Option<Type>, depth: usize) -> Result<Option<Box<Ty>>, String> {
        ty.map(|ty| self.ty(&ty, depth).map(Box::new)).transpose()
    }

    fn ty(&mut self, ty: &Type, depth: usize) -> Result<Ty, String> {
        self.spend("")?;
        if depth > MAX_DEPTH {
            return Err(format!("nests types more than {MAX_DEPTH} deep"));
        }
        let depth = depth + 1;
        let resource = |how: &str, ty: &ResourceType| match (self.resources)(ty) {
            Some(name) => format!("has the resource {how}<{}>", shown(&name)),
            None => format!("has a resource ({how})"),
        };
        Ok(match ty {
            Type::Bool => Ty::Bool,
            Type::S8 => Ty::Int(Int::S8),
            Type::U8 => Ty::Int(Int::U8),
            Type::S16 => Ty::Int(Int::S16),
            Type::U16 => Ty::Int(Int::U16),
            Type::S32 => Ty::Int(Int::S32),
            Type::U32 => Ty::Int(Int::U32),
            Type::S64 => Ty::Int(Int::S64),
            Type::U64 => Ty::Int(Int::U64),
            Type::Float32 => Ty::F32,
            Type::Float64 => Ty::F64,
            Type::Char => Ty::Char,
            Type::String => Ty::String,
            Type::List(list) => match list.ty() {
                Type::U8 => Ty::Bytes,
                ty => Ty::List(Box::new(self.ty(&ty, depth)?)),
            },
            Type::Record(record) => {
                let mut fields = Vec::new();
                for field in record.fields() {
                    self.spend(field.name)?;
                    fields.push((field.name.to_owned(), self.ty(&field.ty, depth)?));
                }
                Ty::Record(fields)
            }
            Type::Tuple(tuple) => {
                let before = self.left;
                let types = tuple.types().map(|ty| self.ty(&ty, depth)).collect::<Result<_, _>>()?;
                // An argument may also be an object, so the schema contains each item twice.
                self.pay(before - self.left)?;
                Ty::Tuple(types)
            }
            Type::Variant(variant) => {
                let mut cases = Vec::new();
                for case in variant.cases() {
                    self.spend(case.name)?;
                    cases.push((case.name.to_owned(), case.ty.map(|ty| self.ty(&ty, depth)).transpose()?));
                }
                Ty::Variant(cases)
            }
            Type::Enum(names) => Ty::Enum(self.names(names.names())?),
            Type::Flags(names) => Ty::Flags(self.names(names.names())?),
            Type::Option(option) => match self.ty(&option.ty(), depth)? {
                Ty::Option(_) => return Err("has an option of an option, which JSON cannot represent".into()),
                ty => Ty::Option(Box::new(ty)),
            },
            Type::Result(result) => Ty::Result(self.boxed(result.ok(), depth)?, self.boxed(result.err(), depth)?),
            Type::Own(ty) => return Err(resource("own", ty)),
            Type::Borrow(ty) => return Err(resource("borrow", ty)),
            Type::Future(_) => return Err("has a future".into()),
            Type::Stream(_) => return Err("has a stream".into()),
            Type::ErrorContext => return Err("has an error-context".into()),
            Type::Map(_) => return Err("has a map".into()),
            Type::FixedLengthList(_) => return Err("has a list of fixed length".into()),
        })
    }
}

/// Escapes and shortens a name from the component for use in a message.
pub(crate) fn shown(name: &str) -> String {
    let mut short: String = name.chars().take(100).flat_map(char::escape_debug).collect();
    if name.chars().nth(100).is_some() {
        short.push('…');
    }
    short
}
