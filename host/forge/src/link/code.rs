//! Translates code and constant expressions to other indices.

use std::collections::BTreeSet;

use wasmparser::{BlockType, ConstExpr, FunctionBody, HeapType, Operator, RefType};

use super::{indices::Indices, level, names::at};
use crate::encode;

/// The value of a constant expression.
#[derive(Clone)]
pub enum Value {
    I32(i32),
    I64(i64),
    /// Any other, as its expression without the end.
    Other(Vec<u8>),
}

impl Value {
    /// Returns an expression for the value.
    pub fn expression(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Self::I32(number) => {
                out.push(0x41);
                encode::signed(&mut out, (*number).into());
            }
            Self::I64(number) => {
                out.push(0x42);
                encode::signed(&mut out, *number);
            }
            Self::Other(expression) => out.extend_from_slice(expression),
        }
        out.push(0x0b);
        out
    }
}

/// Computes a constant expression. `values`: those of the globals, as far as they are known.
pub fn value(expression: &ConstExpr<'_>, indices: &Indices, values: &[Option<Value>]) -> Option<Value> {
    let mut stack = Vec::new();
    let mut operators = expression.get_operators_reader();
    while !operators.eof() {
        let value = match operators.read().ok()? {
            Operator::I32Const { value } => Value::I32(value),
            Operator::I64Const { value } => Value::I64(value),
            Operator::F32Const { value } => Value::Other([&[0x43][..], &value.bits().to_le_bytes()].concat()),
            Operator::F64Const { value } => Value::Other([&[0x44][..], &value.bits().to_le_bytes()].concat()),
            Operator::V128Const { value } => Value::Other([&[0xfd, 12][..], value.bytes()].concat()),
            Operator::RefNull { hty } => {
                let mut out = vec![0xd0];
                encode::reference_type(&mut out, RefType::new(true, hty)?)?;
                Value::Other(out)
            }
            Operator::RefFunc { function_index } => {
                let mut out = Vec::new();
                encode::indexed(&mut out, &[0xd2], indices.function(function_index)?);
                Value::Other(out)
            }
            Operator::GlobalGet { global_index } => at(values, indices.global(global_index)?)?.clone()?,
            operator @ (Operator::I32Add | Operator::I32Sub | Operator::I32Mul) => {
                let (Some(Value::I32(right)), Some(Value::I32(left))) = (stack.pop(), stack.pop()) else { return None };
                Value::I32(match operator {
                    Operator::I32Add => left.wrapping_add(right),
                    Operator::I32Sub => left.wrapping_sub(right),
                    _ => left.wrapping_mul(right),
                })
            }
            Operator::End => continue,
            _ => return None,
        };
        stack.push(value);
    }
    let value = stack.pop();
    value.filter(|_| stack.is_empty())
}

/// Translates a function's body. `module`: the bytes of the module that it is from. `referred`: gets the functions to which it makes
/// references. `None`: it has an instruction that is not known here.
pub fn body(
    module: &[u8],
    body: &FunctionBody<'_>,
    indices: &Indices,
    referred: &mut BTreeSet<u32>,
) -> Option<Vec<u8>> {
    let bytes = |from: u64, to: u64| module.get(level::range(from..to)?);
    let mut locals = body.get_locals_reader().ok()?;
    let mut ignored = Vec::new();
    for _ in 0..locals.get_count() {
        // Types that refer to others are not known here.
        encode::value_type(&mut ignored, locals.read().ok()?.1)?;
    }
    let mut operators = body.get_operators_reader().ok()?;
    let range = body.range();
    let mut out = Vec::with_capacity(usize::try_from(range.end.checked_sub(range.start)?).ok()?);
    let mut copied = range.start;
    while !operators.eof() {
        let (operator, begin) = operators.read_with_offset().ok()?;
        let end = operators.original_position();
        let first = *bytes(begin, end)?.first()?;
        if let Operator::RefFunc { function_index } = operator {
            referred.insert(indices.function(function_index)?);
        }
        let mut new = Vec::new();
        if !translated(first, &operator, indices, &mut new)? {
            continue;
        }
        out.extend_from_slice(bytes(copied, begin)?);
        out.append(&mut new);
        copied = end;
    }
    out.extend_from_slice(bytes(copied, range.end)?);
    Some(encode::sized(&out))
}

/// Appends an instruction with its new indices, if it has any; otherwise returns false. `first`: its first byte.
fn translated(first: u8, operator: &Operator<'_>, indices: &Indices, out: &mut Vec<u8>) -> Option<bool> {
    let function = |index: u32| indices.function(index);
    let global = |index: u32| indices.global(index);
    let table = |index: u32| indices.table(index);
    let ty = |index: u32| at(&indices.types, index).copied();
    let mut indexed = |opcode: &[u8], new: &[u32]| {
        out.extend_from_slice(opcode);
        new.iter().for_each(|index| encode::leb128(out, (*index).into()));
        Some(true)
    };
    match *operator {
        Operator::Call { function_index } | Operator::ReturnCall { function_index } => {
            indexed(&[first], &[function(function_index)?])
        }
        Operator::CallIndirect { type_index, table_index }
        | Operator::ReturnCallIndirect { type_index, table_index } => {
            indexed(&[first], &[ty(type_index)?, table(table_index)?])
        }
        Operator::RefFunc { function_index } => indexed(&[first], &[function(function_index)?]),
        Operator::GlobalGet { global_index } | Operator::GlobalSet { global_index } => {
            indexed(&[first], &[global(global_index)?])
        }
        Operator::TableGet { table: index } | Operator::TableSet { table: index } => {
            indexed(&[first], &[table(index)?])
        }
        Operator::TableInit { elem_index, table: index } => {
            indexed(&[first, 12], &[elem_index.checked_add(indices.elements)?, table(index)?])
        }
        Operator::ElemDrop { elem_index } => indexed(&[first, 13], &[elem_index.checked_add(indices.elements)?]),
        Operator::TableCopy { dst_table, src_table } => indexed(&[first, 14], &[table(dst_table)?, table(src_table)?]),
        Operator::TableGrow { table: index } => indexed(&[first, 15], &[table(index)?]),
        Operator::TableSize { table: index } => indexed(&[first, 16], &[table(index)?]),
        Operator::TableFill { table: index } => indexed(&[first, 17], &[table(index)?]),
        Operator::MemoryInit { data_index, mem: 0 } => {
            indexed(&[first, 8], &[data_index.checked_add(indices.data)?, 0])
        }
        Operator::DataDrop { data_index } => indexed(&[first, 9], &[data_index.checked_add(indices.data)?]),
        Operator::Block { blockty } | Operator::Loop { blockty } | Operator::If { blockty } => match blockty {
            BlockType::Empty => Some(false),
            BlockType::Type(ty) => encode::value_type(&mut Vec::new(), ty).map(|()| false),
            BlockType::FuncType(index) => {
                out.push(first);
                encode::signed(out, ty(index)?.into());
                Some(true)
            }
        },
        Operator::TypedSelect { ty } => encode::value_type(&mut Vec::new(), ty).map(|()| false),
        Operator::RefNull { hty: HeapType::Abstract { .. } } => Some(false),
        // Everything else whose first byte is here has no indices except those of locals, labels and the only memory.
        _ => match first {
            0x00 | 0x01 | 0x05 | 0x0b..=0x0f | 0x1a | 0x1b | 0x20..=0x22 | 0x28..=0xc4 | 0xd1 | 0xfc | 0xfd => {
                Some(false)
            }
            _ => None,
        },
    }
}
