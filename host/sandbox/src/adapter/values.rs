//! Converts values from JSON and to JSON. Both directions are bounded: a byte of JSON may take forty bytes as a value, and the other way
//! round.

use std::{borrow::Cow, cell::RefCell, fmt, io};

use base64::{Engine, display::Base64Display, engine::general_purpose::STANDARD};
use serde::{
    Serialize,
    de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;
use wasmtime::component::Val;

use super::{
    schema::item_name,
    types::{Int, Ty, shown},
};
use wharf_base::accounts::{Account, Charge};

/// Values are charged in steps of this many bytes.
const CHARGE_STEP_BYTES: usize = 64 << 10;

/// The memory budget for decoded values.
pub(crate) struct Purse {
    charge: Charge,
    spent: usize,
    most: usize,
    /// Whether the account had no room.
    no_room: bool,
}

impl Purse {
    /// Creates a budget of at most `most` bytes, which are charged to `account` as they are spent.
    pub(crate) fn new(account: &Account, most: usize) -> Self {
        Self { charge: account.open(), spent: 0, most, no_room: false }
    }

    fn pay(&mut self, bytes: usize) -> Result<(), String> {
        self.spent = self.spent.saturating_add(bytes);
        if self.spent > self.most {
            return Err(format!("they take more than {} MiB when decoded", self.most >> 20));
        }
        self.charge.cover(self.spent.next_multiple_of(CHARGE_STEP_BYTES)).map_err(|_| {
            self.no_room = true;
            String::new()
        })
    }
}

/// Why arguments cannot be decoded.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// The memory of all calls is used up.
    NoRoom,
    /// The arguments do not fit the function's types. The text is for the client.
    Invalid(String),
}

/// Decodes the arguments of a function.
pub(crate) fn arguments(params: &[(String, Ty)], json: &str, purse: &mut Purse) -> Result<Vec<Val>, Wrong> {
    let cell = RefCell::new(purse);
    let reader = &mut serde_json::Deserializer::from_str(json);
    let read = reader.deserialize_map(Members::of(params, &cell));
    let purse = cell.into_inner();
    match read {
        Ok(values) => Ok(values.into_iter().map(|(_, value)| value).collect()),
        Err(_) if purse.no_room => Err(Wrong::NoRoom),
        Err(error) => Err(Wrong::Invalid(without_position(&error))),
    }
}

type Shared<'a, 'p> = &'a RefCell<&'p mut Purse>;

/// Charges for bytes that are stored, and for names that are compared, which bounds the time as well.
fn pay<E: serde::de::Error>(purse: Shared<'_, '_>, bytes: usize) -> Result<(), E> {
    purse.borrow_mut().pay(bytes).map_err(E::custom)
}

/// Decodes a value of a type.
#[derive(Clone, Copy)]
struct Seed<'a, 'p> {
    ty: &'a Ty,
    purse: Shared<'a, 'p>,
}

impl<'de> DeserializeSeed<'de> for Seed<'_, '_> {
    type Value = Val;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Val, D::Error> {
        pay(self.purse, size_of::<Val>())?;
        let names = match self.ty {
            Ty::Enum(names) => names.len(),
            Ty::Variant(cases) => cases.len(),
            _ => 0,
        };
        pay(self.purse, names)?;
        match self.ty {
            Ty::Option(_) => from.deserialize_option(self),
            _ => from.deserialize_any(self),
        }
    }
}

impl Seed<'_, '_> {
    fn int<E: serde::de::Error>(&self, number: i128) -> Result<Val, E> {
        let Ty::Int(int) = self.ty else { return self.float(number as f64) };
        let (least, most) = int.bounds();
        if !(least..=most).contains(&number) {
            return Err(E::custom(format_args!("{number} is not between {least} and {most}")));
        }
        // The value is within the bounds of the type, so the casts are lossless.
        Ok(match int {
            Int::S8 => Val::S8(number as i8),
            Int::U8 => Val::U8(number as u8),
            Int::S16 => Val::S16(number as i16),
            Int::U16 => Val::U16(number as u16),
            Int::S32 => Val::S32(number as i32),
            Int::U32 => Val::U32(number as u32),
            Int::S64 => Val::S64(number as i64),
            Int::U64 => Val::U64(number as u64),
        })
    }

    fn float<E: serde::de::Error>(&self, number: f64) -> Result<Val, E> {
        match self.ty {
            Ty::F32 => Ok(Val::Float32(number as f32)),
            Ty::F64 => Ok(Val::Float64(number)),
            // 5.0 and 5 are the same number in JSON.
            Ty::Int(_) if number.fract() == 0.0 && number.abs() < 1e20 => self.int(number as i128),
            _ => Err(E::custom(format_args!("{number} is not {}", what(self.ty)))),
        }
    }
}

/// Decodes a payload: a value if the case has a type, and null otherwise.
struct Payload<'a, 'p> {
    ty: Option<&'a Ty>,
    purse: Shared<'a, 'p>,
}

impl<'de> DeserializeSeed<'de> for Payload<'_, '_> {
    type Value = Option<Box<Val>>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        match self.ty {
            Some(ty) => Seed { ty, purse: self.purse }.deserialize(from).map(|value| Some(Box::new(value))),
            None => <Option<serde::de::IgnoredAny> as serde::Deserialize>::deserialize(from).map(|_| None),
        }
    }
}

impl<'de> Visitor<'de> for Seed<'_, '_> {
    type Value = Val;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(what(self.ty))
    }

    fn visit_none<E: serde::de::Error>(self) -> Result<Val, E> {
        Ok(Val::Option(None))
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Val, E> {
        Ok(Val::Option(None))
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<Val, D::Error> {
        let Ty::Option(of) = self.ty else { return Err(D::Error::custom("unexpected value")) };
        let value = Seed { ty: of, purse: self.purse }.deserialize(from)?;
        Ok(Val::Option(Some(Box::new(value))))
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<Val, E> {
        match self.ty {
            Ty::Bool => Ok(Val::Bool(value)),
            _ => Err(E::invalid_type(serde::de::Unexpected::Bool(value), &self)),
        }
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Val, E> {
        self.int(value.into())
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Val, E> {
        self.int(value.into())
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Val, E> {
        self.float(value)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Val, E> {
        pay(self.purse, text.len())?;
        let mut letters = text.chars();
        match self.ty {
            Ty::String => Ok(Val::String(text.to_owned())),
            Ty::Char => match (letters.next(), letters.next()) {
                (Some(letter), None) => Ok(Val::Char(letter)),
                _ => Err(E::custom("a char has to be one character")),
            },
            Ty::Enum(names) if names.iter().any(|name| name == text) => Ok(Val::Enum(text.to_owned())),
            Ty::Enum(_) => Err(E::custom(format_args!("`{}` is not one of its cases", shown(text)))),
            Ty::Int(int) if int.is_wide() => match text.parse::<i128>() {
                Ok(number) => self.int(number),
                Err(_) => Err(E::custom("a string in place of a number has to be an integer in decimal digits")),
            },
            Ty::Bytes => {
                pay(self.purse, (text.len() / 4).saturating_mul(3 * size_of::<Val>()))?;
                let bytes = STANDARD.decode(text).map_err(|error| E::custom(format_args!("not base64: {error}")))?;
                Ok(Val::List(bytes.into_iter().map(Val::U8).collect()))
            }
            _ => Err(E::invalid_type(serde::de::Unexpected::Str(&shown(text)), &self)),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Val, A::Error> {
        let purse = self.purse;
        match self.ty {
            Ty::Bytes | Ty::List(_) => {
                let ty = match self.ty {
                    Ty::List(of) => of,
                    _ => &Ty::Int(Int::U8),
                };
                let mut values = Vec::new();
                while let Some(value) = items.next_element_seed(Seed { ty, purse })? {
                    // The list may have allocated twice the room that its items need.
                    pay(purse, size_of::<Val>())?;
                    values.push(value);
                }
                Ok(Val::List(values))
            }
            Ty::Tuple(types) => {
                let mut values = Vec::new();
                for ty in types {
                    match items.next_element_seed(Seed { ty, purse })? {
                        Some(value) => values.push(value),
                        None => return Err(A::Error::custom("the tuple is too short")),
                    }
                }
                match items.next_element::<serde::de::IgnoredAny>()? {
                    None => Ok(Val::Tuple(values)),
                    Some(_) => Err(A::Error::custom("the tuple is too long")),
                }
            }
            Ty::Flags(names) => {
                let mut flags: Vec<String> = Vec::new();
                while let Some(flag) = items.next_element::<String>()? {
                    pay(purse, names.len())?;
                    if !names.contains(&flag) {
                        return Err(A::Error::custom(format_args!("`{}` is not one of its flags", shown(&flag))));
                    }
                    // Each flag counts once, so there are never more than the type has.
                    if !flags.contains(&flag) {
                        pay(purse, flag.len() + size_of::<String>())?;
                        flags.push(flag);
                    }
                }
                Ok(Val::Flags(flags))
            }
            _ => Err(A::Error::invalid_type(serde::de::Unexpected::Seq, &self)),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Val, A::Error> {
        let purse = self.purse;
        match self.ty {
            Ty::Record(fields) => Members::of(fields, purse).visit_map(map).map(Val::Record),
            Ty::Tuple(types) => {
                let fields = types.iter().enumerate().map(|(at, ty)| (Cow::Owned(item_name(at)), ty)).collect();
                let values = Members { fields, purse }.visit_map(map)?;
                Ok(Val::Tuple(values.into_iter().map(|(_, value)| value).collect()))
            }
            Ty::Flags(names) => {
                let mut flags: Vec<String> = Vec::new();
                while let Some((name, on)) = map.next_entry::<String, bool>()? {
                    pay(purse, names.len())?;
                    if !names.contains(&name) {
                        return Err(A::Error::custom(format_args!("`{}` is not one of its flags", shown(&name))));
                    }
                    if on && !flags.contains(&name) {
                        pay(purse, name.len() + size_of::<String>())?;
                        flags.push(name);
                    }
                }
                Ok(Val::Flags(flags))
            }
            Ty::Result(ok, err) => {
                let mut result = None;
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "ok" => result = Some(Ok(map.next_value_seed(Payload { ty: ok.as_deref(), purse })?)),
                        "err" => result = Some(Err(map.next_value_seed(Payload { ty: err.as_deref(), purse })?)),
                        _ => drop(map.next_value::<serde::de::IgnoredAny>()?),
                    }
                }
                result.map(Val::Result).ok_or_else(|| A::Error::custom("a result needs `ok` or `err`"))
            }
            Ty::Variant(cases) => {
                let mut tag: Option<&(String, Option<Ty>)> = None;
                let (mut early, mut value) = (None, None);
                while let Some(key) = map.next_key::<String>()? {
                    match (key.as_str(), &tag) {
                        ("tag", _) => {
                            let name: String = map.next_value()?;
                            let case = cases.iter().find(|(case, _)| *case == name);
                            tag = Some(case.ok_or_else(|| {
                                A::Error::custom(format_args!("`{}` is not one of its cases", shown(&name)))
                            })?);
                        }
                        ("val", Some((_, Some(ty)))) => {
                            value = Some(map.next_value_seed(Seed { ty, purse })?);
                        }
                        ("val", None) => {
                            // Its type is not known yet.
                            let text: Box<RawValue> = map.next_value()?;
                            pay(purse, text.get().len())?;
                            early = Some(text);
                        }
                        _ => drop(map.next_value::<serde::de::IgnoredAny>()?),
                    }
                }
                let Some((name, ty)) = tag else { return Err(A::Error::custom("a variant needs a `tag`")) };
                if let (Some(ty), Some(text)) = (ty, early) {
                    let reader = &mut serde_json::Deserializer::from_str(text.get());
                    value = Some(Seed { ty, purse }.deserialize(reader).map_err(A::Error::custom)?);
                }
                if ty.is_some() != value.is_some() {
                    return Err(A::Error::custom(format_args!("the case `{}` lacks its `val`", shown(name))));
                }
                pay(purse, name.len())?;
                Ok(Val::Variant(name.clone(), value.map(Box::new)))
            }
            _ => Err(A::Error::invalid_type(serde::de::Unexpected::Map, &self)),
        }
    }
}

/// Decodes an object that represents a record or a list of parameters. The values are in the order of the fields.
struct Members<'a, 'p> {
    fields: Vec<(Cow<'a, str>, &'a Ty)>,
    purse: Shared<'a, 'p>,
}

impl<'a, 'p> Members<'a, 'p> {
    fn of(fields: &'a [(String, Ty)], purse: Shared<'a, 'p>) -> Self {
        Self { fields: fields.iter().map(|(name, ty)| (Cow::Borrowed(name.as_str()), ty)).collect(), purse }
    }
}

impl<'de> Visitor<'de> for Members<'_, '_> {
    type Value = Vec<(String, Val)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let Self { fields, purse } = self;
        let names: usize = fields.iter().map(|(name, _)| name.len()).sum();
        pay(purse, names + fields.len() * size_of::<(String, Option<Val>)>())?;
        let mut values: Vec<Option<Val>> = fields.iter().map(|_| None).collect();
        while let Some(key) = map.next_key::<String>()? {
            pay(purse, fields.len())?;
            let at = fields.iter().position(|(name, _)| *name == key);
            let Some(((_, ty), place)) = at.and_then(|at| fields.get(at).zip(values.get_mut(at))) else {
                map.next_value::<serde::de::IgnoredAny>()?;
                continue;
            };
            let value = map.next_value_seed(Seed { ty, purse });
            *place = Some(value.map_err(|error| named(&key, &error))?);
        }
        let both = fields.into_iter().zip(values).map(|((name, ty), value)| match (value, ty) {
            (Some(value), _) => Ok((name.into_owned(), value)),
            (None, Ty::Option(_)) => Ok((name.into_owned(), Val::Option(None))),
            (None, _) => Err(A::Error::custom(format_args!("`{}` is missing", shown(&name)))),
        });
        both.collect()
    }
}

/// Puts the name of a member before an error. The position in the text is left out, because the client did not write the text.
fn named<E: serde::de::Error>(name: &str, error: &E) -> E {
    E::custom(format_args!("{}: {}", shown(name), without_position(error)))
}

fn without_position(error: &dyn fmt::Display) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or_default().to_owned()
}

fn what(ty: &Ty) -> &'static str {
    match ty {
        Ty::Bool => "true or false",
        Ty::Int(_) => "an integer",
        Ty::F32 | Ty::F64 => "a number",
        Ty::Char => "one character",
        Ty::String => "a string",
        Ty::Bytes => "base64, or an array of bytes",
        Ty::List(_) => "an array",
        Ty::Record(_) => "an object",
        Ty::Tuple(_) => "an array",
        Ty::Variant(_) => "an object with `tag`",
        Ty::Enum(_) => "the name of a case",
        Ty::Option(_) => "a value or null",
        Ty::Result(..) => "an object with `ok` or `err`",
        Ty::Flags(_) => "an array of names",
    }
}

/// Why a result cannot be represented in JSON.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unrepresentable {
    TooLong,
    /// JSON has neither NaN nor infinity.
    NotANumber,
    /// The value does not have the result type of its function.
    OtherType,
}

/// Returns the JSON of a result as structured content.
pub(crate) fn structured(ty: &Ty, value: &Val, most: usize) -> Result<String, Unrepresentable> {
    let mut writer = Writer { text: String::new(), most };
    writer.put("{\"result\":")?;
    writer.value(ty, value)?;
    writer.put("}")?;
    Ok(writer.text)
}

/// Returns the JSON of a value.
pub(crate) fn text(ty: &Ty, value: &Val, most: usize) -> Result<String, Unrepresentable> {
    let mut writer = Writer { text: String::new(), most };
    writer.value(ty, value)?;
    Ok(writer.text)
}

/// Returns the JSON of anything, up to a length.
pub(crate) fn json(value: &impl Serialize, most: usize) -> Result<String, Unrepresentable> {
    let mut writer = Writer { text: String::new(), most };
    serde_json::to_writer(&mut writer, value).map_err(|_| Unrepresentable::TooLong)?;
    Ok(writer.text)
}

/// Writes JSON up to a length.
struct Writer {
    text: String,
    most: usize,
}

/// serde_json writes UTF-8, and each write has whole characters.
impl io::Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = std::str::from_utf8(bytes).map_err(io::Error::other)?;
        self.put(text).map_err(|_| io::Error::other("too long"))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Writer {
    fn put(&mut self, text: &str) -> Result<(), Unrepresentable> {
        if self.text.len().saturating_add(text.len()) > self.most {
            return Err(Unrepresentable::TooLong);
        }
        self.text.push_str(text);
        Ok(())
    }

    fn string(&mut self, text: &str) -> Result<(), Unrepresentable> {
        serde_json::to_writer(self, text).map_err(|_| Unrepresentable::TooLong)
    }

    fn number(&mut self, number: f64) -> Result<(), Unrepresentable> {
        let number = serde_json::Number::from_f64(number).ok_or(Unrepresentable::NotANumber)?;
        self.put(&number.to_string())
    }

    fn wide(&mut self, number: i128) -> Result<(), Unrepresentable> {
        // Larger integers are written as strings, because many JSON parsers round them.
        const EXACT: i128 = (1 << 53) - 1;
        if (-EXACT..=EXACT).contains(&number) {
            self.put(&number.to_string())
        } else {
            self.string(&number.to_string())
        }
    }

    fn items<'v>(
        &mut self,
        (open, close): (&str, &str),
        items: impl Iterator<Item = (Option<&'v str>, &'v Ty, &'v Val)>,
    ) -> Result<(), Unrepresentable> {
        self.put(open)?;
        for (at, (name, ty, value)) in items.enumerate() {
            if at > 0 {
                self.put(",")?;
            }
            if let Some(name) = name {
                self.string(name)?;
                self.put(":")?;
            }
            self.value(ty, value)?;
        }
        self.put(close)
    }

    fn side(&mut self, name: &str, ty: Option<&Ty>, value: Option<&Val>) -> Result<(), Unrepresentable> {
        self.put("{")?;
        self.string(name)?;
        self.put(":")?;
        match (ty, value) {
            (Some(ty), Some(value)) => self.value(ty, value)?,
            (None, None) => self.put("null")?,
            _ => return Err(Unrepresentable::OtherType),
        }
        self.put("}")
    }

    fn value(&mut self, ty: &Ty, value: &Val) -> Result<(), Unrepresentable> {
        match (ty, value) {
            (Ty::Bool, Val::Bool(value)) => self.put(if *value { "true" } else { "false" }),
            (Ty::Int(_), value) => self.wide(match value {
                Val::S8(number) => (*number).into(),
                Val::U8(number) => (*number).into(),
                Val::S16(number) => (*number).into(),
                Val::U16(number) => (*number).into(),
                Val::S32(number) => (*number).into(),
                Val::U32(number) => (*number).into(),
                Val::S64(number) => (*number).into(),
                Val::U64(number) => (*number).into(),
                _ => return Err(Unrepresentable::OtherType),
            }),
            // The shortest digits that identify the 32-bit float, and not all digits of the 64-bit float with the same value.
            (Ty::F32, Val::Float32(number)) => self.number(number.to_string().parse().unwrap_or(f64::NAN)),
            (Ty::F64, Val::Float64(number)) => self.number(*number),
            (Ty::Char, Val::Char(letter)) => self.string(letter.encode_utf8(&mut [0; 4])),
            (Ty::String, Val::String(text)) => self.string(text),
            (Ty::Enum(_), Val::Enum(name)) => self.string(name),
            (Ty::Bytes, Val::List(values)) => {
                let byte = |value: &Val| match value {
                    Val::U8(byte) => Ok(*byte),
                    _ => Err(Unrepresentable::OtherType),
                };
                let bytes = values.iter().map(byte).collect::<Result<Vec<u8>, _>>()?;
                self.string(&Base64Display::new(&bytes, &STANDARD).to_string())
            }
            (Ty::List(of), Val::List(values)) => {
                self.items(("[", "]"), values.iter().map(|value| (None, &**of, value)))
            }
            (Ty::Tuple(types), Val::Tuple(values)) if types.len() == values.len() => {
                self.items(("[", "]"), types.iter().zip(values).map(|(ty, value)| (None, ty, value)))
            }
            (Ty::Record(fields), Val::Record(values)) if fields.len() == values.len() => {
                let both = fields.iter().zip(values);
                self.items(("{", "}"), both.map(|((name, ty), (_, value))| (Some(name.as_str()), ty, value)))
            }
            (Ty::Variant(cases), Val::Variant(name, value)) => {
                let case = cases.iter().find(|(case, _)| case == name).ok_or(Unrepresentable::OtherType)?;
                self.put("{\"tag\":")?;
                self.string(name)?;
                match (&case.1, value) {
                    (Some(ty), Some(value)) => {
                        self.put(",\"val\":")?;
                        self.value(ty, value)?;
                    }
                    (None, None) => {}
                    _ => return Err(Unrepresentable::OtherType),
                }
                self.put("}")
            }
            (Ty::Option(_), Val::Option(None)) => self.put("null"),
            (Ty::Option(of), Val::Option(Some(value))) => self.value(of, value),
            (Ty::Result(ok, _), Val::Result(Ok(value))) => self.side("ok", ok.as_deref(), value.as_deref()),
            (Ty::Result(_, err), Val::Result(Err(value))) => self.side("err", err.as_deref(), value.as_deref()),
            (Ty::Flags(_), Val::Flags(names)) => {
                self.put("[")?;
                for (at, name) in names.iter().enumerate() {
                    if at > 0 {
                        self.put(",")?;
                    }
                    self.string(name)?;
                }
                self.put("]")
            }
            _ => Err(Unrepresentable::OtherType),
        }
    }
}
