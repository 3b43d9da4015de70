//! The context of a call: information about the caller, and questions to it.

use std::cell::RefCell;

use serde::{Serialize, de::DeserializeOwned};

use crate::{
    Answer, ClientCapabilities, Context, Error, FormAnswer, Level, Question, Result, Root, Round, form::TypedForm, host,
};

/// A call of the plugin: its context, the answers received so far, and functions to ask questions and report progress.
pub struct Call {
    context: Context,
    state: RefCell<Option<Vec<u8>>>,
}

impl Call {
    pub fn new(context: Context) -> Self {
        let state = RefCell::new(context.state.clone());
        Self { context, state }
    }

    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Whether the client declared these capabilities.
    pub fn can(&self, capabilities: ClientCapabilities) -> bool {
        self.context.capabilities.contains(capabilities)
    }

    /// Returns the id of the caller, under which the plugin can store what belongs to that user. It is made for this plugin alone, and is
    /// neither a name nor a secret. `None`: wharf does not tell callers apart, because it is used over stdio, or over HTTP without
    /// credentials; all such calls count as one caller's.
    pub fn caller(&self) -> Option<&str> {
        self.context.caller.as_deref()
    }

    /// Shows a form to the user and returns their answer.
    ///
    /// The first time, this returns an error, which ends the call. Then wharf asks the user and calls the function again from its start,
    /// and this returns the answer. So before the last question, do nothing that must not happen twice.
    ///
    /// ```no_run
    /// # use wharf_sdk::{FormAnswer, prelude::*};
    /// #[derive(Deserialize, JsonSchema)]
    /// struct Sure {
    ///     really: bool,
    /// }
    ///
    /// fn purge(call: &Call) -> Result<String> {
    ///     let FormAnswer::Accepted(Sure { really: true }) = call.ask("sure", form::<Sure>("Delete 14 notes?"))? else {
    ///         return Ok("kept".into());
    ///     };
    ///     Ok("deleted".into())
    /// }
    /// # fn main() {}
    /// ```
    pub fn ask<T: DeserializeOwned>(&self, key: &str, form: TypedForm<T>) -> Result<FormAnswer<T>> {
        match self.answer(key, Question::Form(form.form))? {
            Answer::Accepted(json) => Ok(FormAnswer::Accepted(serde_json::from_str(&json)?)),
            Answer::Declined => Ok(FormAnswer::Declined),
            Answer::Cancelled => Ok(FormAnswer::Cancelled),
            Answer::Sampled(_) | Answer::Roots(_) => Err(unexpected(key)),
        }
    }

    /// Asks the user to open a URL in a browser, and returns whether they agreed.
    pub fn ask_url(&self, key: &str, url: crate::Url) -> Result<bool> {
        match self.answer(key, Question::Url(url))? {
            Answer::Accepted(_) => Ok(true),
            Answer::Declined | Answer::Cancelled => Ok(false),
            Answer::Sampled(_) | Answer::Roots(_) => Err(unexpected(key)),
        }
    }

    /// Asks the client's model, with the parameters of `sampling/createMessage`. Do not trust the reply.
    pub fn sample(&self, key: &str, params: serde_json::Value) -> Result<serde_json::Value> {
        match self.answer(key, Question::Sampling(params.to_string()))? {
            Answer::Sampled(json) => Ok(serde_json::from_str(&json)?),
            Answer::Declined | Answer::Cancelled => Err(Error::failed("the client did not want to sample")),
            Answer::Accepted(_) | Answer::Roots(_) => Err(unexpected(key)),
        }
    }

    /// Returns the roots that the client has opened, as the client spells them. [`host::directories`] returns the directories that the
    /// plugin may *use*.
    pub fn roots(&self) -> Result<Vec<Root>> {
        match self.answer("roots", Question::Roots)? {
            Answer::Roots(roots) => Ok(roots),
            Answer::Accepted(_) | Answer::Declined | Answer::Cancelled | Answer::Sampled(_) => Err(unexpected("roots")),
        }
    }

    /// Asks several questions in one round. The answers are in the order of the questions.
    pub fn ask_all(&self, questions: Vec<(String, Question)>) -> Result<Vec<Answer>> {
        let answers: Option<Vec<Answer>> = questions.iter().map(|(key, _)| self.given(key)).collect();
        match answers {
            Some(answers) => Ok(answers),
            None => {
                let open = questions.into_iter().filter(|(key, _)| self.given(key).is_none()).collect();
                Err(Error::Ask(Round { questions: open, state: self.state.borrow().clone() }))
            }
        }
    }

    /// Stores a value for the next round, when this function is called again with answers. The value has at most 64 KiB of JSON, and the
    /// client can neither read nor change it.
    pub fn keep<T: Serialize>(&self, state: &T) -> Result<()> {
        *self.state.borrow_mut() = Some(serde_json::to_vec(state)?);
        Ok(())
    }

    /// Returns the value that an earlier round stored with [`keep`](Self::keep).
    pub fn kept<T: DeserializeOwned>(&self) -> Result<Option<T>> {
        match &self.context.state {
            Some(state) => Ok(Some(serde_json::from_slice(state)?)),
            None => Ok(None),
        }
    }

    /// Reports progress to the client, in any unit; `done` must grow from report to report.
    pub fn progress(&self, done: f64, total: Option<f64>, message: Option<&str>) {
        host::progress(done, total, message);
    }

    pub fn log(&self, level: Level, message: &str) {
        host::log(level, message, None);
    }

    fn given(&self, key: &str) -> Option<Answer> {
        self.context.answers.iter().find(|(name, _)| name == key).map(|(_, answer)| answer.clone())
    }

    fn answer(&self, key: &str, question: Question) -> Result<Answer> {
        self.given(key).ok_or_else(|| {
            Error::Ask(Round { questions: vec![(key.to_owned(), question)], state: self.state.borrow().clone() })
        })
    }
}

fn unexpected(key: &str) -> Error {
    Error::failed(format!("the answer to `{key}` is of another kind than the question"))
}
