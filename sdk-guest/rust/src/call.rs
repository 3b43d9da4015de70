//! What a call knows of its caller, and how it asks the caller questions.

use std::cell::RefCell;

use serde::{Serialize, de::DeserializeOwned};

use crate::{
    Abilities, Answer, Context, Error, FormAnswer, Level, Question, Result, Root, Round, form::TypedForm, host,
};

/// One call: its context, the answers that it got so far, and the functions by which it asks and reports.
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

    pub fn can(&self, ability: Abilities) -> bool {
        self.context.abilities.contains(ability)
    }

    /// Puts a form to the person and returns what they did. The first time, this returns an error that ends the call. Then
    /// wharf asks the person and calls the function again from its start, and this returns the answer. So put nothing before it
    /// that must not happen twice.
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

    /// Asks the person to open a page over https. True if they agreed.
    pub fn ask_page(&self, key: &str, page: crate::Page) -> Result<bool> {
        match self.answer(key, Question::Page(page))? {
            Answer::Accepted(_) => Ok(true),
            Answer::Declined | Answer::Cancelled => Ok(false),
            Answer::Sampled(_) | Answer::Roots(_) => Err(unexpected(key)),
        }
    }

    /// Has the client's model answer; `params` are those of `sampling/createMessage`. Do not trust the reply.
    pub fn sample(&self, key: &str, params: serde_json::Value) -> Result<serde_json::Value> {
        match self.answer(key, Question::Sample(params.to_string()))? {
            Answer::Sampled(json) => Ok(serde_json::from_str(&json)?),
            Answer::Declined | Answer::Cancelled => Err(Error::failed("the client did not want to sample")),
            Answer::Accepted(_) | Answer::Roots(_) => Err(unexpected(key)),
        }
    }

    /// The roots that the client has opened, as the client spells them. The directories that the plugin may *use* are in
    /// [`host::directories`].
    pub fn roots(&self) -> Result<Vec<Root>> {
        match self.answer("roots", Question::Roots)? {
            Answer::Roots(roots) => Ok(roots),
            Answer::Accepted(_) | Answer::Declined | Answer::Cancelled | Answer::Sampled(_) => Err(unexpected("roots")),
        }
    }

    /// Asks several questions in one round. The answers come in the order of the questions.
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

    /// Keeps a value for the next round, when this call is made again with answers. At most 64 KiB; nobody else can read it.
    pub fn keep<T: Serialize>(&self, state: &T) -> Result<()> {
        *self.state.borrow_mut() = Some(serde_json::to_vec(state)?);
        Ok(())
    }

    /// The value that an earlier round kept with [`keep`](Self::keep).
    pub fn kept<T: DeserializeOwned>(&self) -> Result<Option<T>> {
        match &self.context.state {
            Some(state) => Ok(Some(serde_json::from_slice(state)?)),
            None => Ok(None),
        }
    }

    /// Tells how far the call has come, in any unit; `done` must grow.
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
