//! Tools that a client can run in the background, and one that it cannot.

use std::time::Duration;

use wharf_sdk::{Answer, FailureKind, FormAnswer, prelude::*};

use crate::{asking::name_form, wait, wait_ms};

#[derive(Deserialize, JsonSchema)]
#[serde(crate = "wharf_sdk::serde")]
#[schemars(crate = "wharf_sdk::schemars")]
pub struct Person {
    /// Whom to greet.
    pub name: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(crate = "wharf_sdk::serde")]
#[schemars(crate = "wharf_sdk::schemars")]
pub struct Compute {
    /// How long it takes.
    seconds: f64,
    /// What to call the result.
    label: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(crate = "wharf_sdk::serde")]
#[schemars(crate = "wharf_sdk::schemars")]
pub struct File {
    /// Which file would go.
    filename: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(crate = "wharf_sdk::serde")]
#[schemars(crate = "wharf_sdk::schemars")]
struct Confirm {
    /// Whether to delete it.
    confirm: bool,
}

pub fn greet(person: &Person) -> String {
    format!("Hello, {}!", person.name)
}

pub fn slow_compute(args: Compute) -> Result<String> {
    let time = Duration::try_from_secs_f64(args.seconds)
        .map_err(|problem| Error::invalid_params(format!("`seconds`: {problem}")))?;
    wait(time);
    Ok(format!("Computed {} in {} seconds.", args.label.as_deref().unwrap_or("it"), args.seconds))
}

/// A failure of the tool itself is for the model to read: the task completes, with a result that says so.
pub fn failing_job() -> Result<String> {
    wait_ms(1000);
    Err(Error::failed("The job did not work out."))
}

/// An invalid request is a protocol error: the task fails.
pub fn protocol_error_job() -> Result<String> {
    Err(Error::Protocol { kind: FailureKind::Other(-32603), message: "The job cannot run.".into(), data: None })
}

pub fn confirm_delete(call: &Call, file: &File) -> Result<String> {
    match call.ask("confirm", form::<Confirm>(format!("Delete {}?", file.filename)))? {
        FormAnswer::Accepted(Confirm { confirm: true }) => Ok(format!("Deleted {}.", file.filename)),
        FormAnswer::Accepted(_) | FormAnswer::Declined | FormAnswer::Cancelled => {
            Ok(format!("Kept {}.", file.filename))
        }
    }
}

pub fn multi_input(call: &Call) -> Result<String> {
    let answers = call.ask_all(vec![
        ("first".into(), name_form("The first name?")),
        ("second".into(), name_form("The second name?")),
    ])?;
    let given = answers.iter().filter(|answer| matches!(answer, Answer::Accepted(_))).count();
    Ok(format!("{given} names were given."))
}
