//! A tool for thinking step by step. Name, arguments and answers are those of the reference sequential thinking server, so that prompts and
//! settings written for it keep working.
//!
//! The plugin counts the thoughts and remembers the names of their branches; it never returns the thoughts themselves. This state is in the
//! instance's memory, so it outlives a call only with `instances = "reused"`, which is the default of the built-in plugin.
//!
//! Answers are JSON as text, like those of the reference server. There is no structured content, since it would say the same again.

use std::{cell::RefCell, env};

use wharf_sdk::{
    Call, Level,
    prelude::*,
    serde,
    serde::de::{self, Deserializer},
};

wharf_sdk::instructions!(
    "`sequentialthinking` counts the thoughts of a session and the names of their branches; it stores no texts."
);

wants! {
    env = [{ name = "DISABLE_THOUGHT_LOGGING", why = "true keeps thoughts out of the log, as with the reference server" }],
}

/// The schema of the arguments. Many clients write numbers and booleans as strings, which the reference server accepts as well.
const SCHEMA: &str = r#"{
  "type": "object",
  "properties": {
    "thought": { "type": "string", "description": "Your current thinking step" },
    "nextThoughtNeeded": { "type": ["boolean", "string"], "description": "Whether another thought step is needed" },
    "thoughtNumber": {
      "type": ["integer", "string"], "minimum": 1, "maximum": 9007199254740991,
      "description": "Current thought number (numeric value, e.g., 1, 2, 3)"
    },
    "totalThoughts": {
      "type": ["integer", "string"], "minimum": 1, "maximum": 9007199254740991,
      "description": "Estimated total thoughts needed (numeric value, e.g., 5, 10)"
    },
    "isRevision": { "type": ["boolean", "string", "null"], "description": "Whether this revises previous thinking" },
    "revisesThought": {
      "type": ["integer", "string", "null"], "minimum": 1, "maximum": 9007199254740991,
      "description": "Which thought is being reconsidered"
    },
    "branchFromThought": {
      "type": ["integer", "string", "null"], "minimum": 1, "maximum": 9007199254740991,
      "description": "Branching point thought number"
    },
    "branchId": { "type": ["string", "null"], "description": "Branch identifier" },
    "needsMoreThoughts": { "type": ["boolean", "string", "null"], "description": "If more thoughts are needed" }
  },
  "required": ["thought", "nextThoughtNeeded", "thoughtNumber", "totalThoughts"]
}"#;

/// The maximum number of branches. Every answer lists all of them.
const MAX_BRANCHES: usize = 1000;
/// The largest integer that JavaScript clients can represent, `Number.MAX_SAFE_INTEGER`.
const MAX_NUMBER: f64 = 9_007_199_254_740_991.0;

#[derive(Deserialize)]
#[serde(crate = "serde", rename_all = "camelCase")]
struct Thought {
    thought: String,
    #[serde(deserialize_with = "truth")]
    next_thought_needed: bool,
    #[serde(deserialize_with = "number")]
    thought_number: u64,
    #[serde(deserialize_with = "number")]
    total_thoughts: u64,
    #[serde(default, deserialize_with = "perhaps_truth")]
    is_revision: Option<bool>,
    #[serde(default, deserialize_with = "perhaps_number")]
    revises_thought: Option<u64>,
    #[serde(default, deserialize_with = "perhaps_number")]
    branch_from_thought: Option<u64>,
    branch_id: Option<String>,
    #[serde(default, deserialize_with = "perhaps_truth")]
    #[expect(dead_code, reason = "it is validated and otherwise ignored, as in the reference server")]
    needs_more_thoughts: Option<bool>,
}

#[derive(Deserialize)]
#[serde(crate = "serde", untagged)]
enum Given {
    Truth(bool),
    Number(f64),
    Text(String),
}

fn perhaps_truth<'de, D: Deserializer<'de>>(from: D) -> Result<Option<bool>, D::Error> {
    Ok(match Option::<Given>::deserialize(from)? {
        None => None,
        Some(Given::Truth(truth)) => Some(truth),
        Some(Given::Text(text)) if text.eq_ignore_ascii_case("true") => Some(true),
        Some(Given::Text(text)) if text.eq_ignore_ascii_case("false") => Some(false),
        Some(Given::Text(text)) => return Err(de::Error::custom(format!("write true or false in place of `{text}`"))),
        Some(Given::Number(number)) => {
            return Err(de::Error::custom(format!("write true or false in place of {number}")));
        }
    })
}

fn perhaps_number<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let number = match Option::<Given>::deserialize(from)? {
        None => return Ok(None),
        Some(Given::Number(number)) => Some(number),
        Some(Given::Text(text)) => text.trim().parse().ok(),
        Some(Given::Truth(_)) => None,
    };
    match number {
        Some(number) if number.fract() == 0.0 && (1.0..=MAX_NUMBER).contains(&number) => Ok(Some(number as u64)),
        _ => Err(de::Error::custom("thought numbers must be integers from 1 on")),
    }
}

fn truth<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    perhaps_truth(from)?.ok_or_else(|| de::Error::custom("write true or false in place of null"))
}

fn number<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    perhaps_number(from)?.ok_or_else(|| de::Error::custom("write a number in place of null"))
}

#[derive(Serialize)]
#[serde(crate = "serde", rename_all = "camelCase")]
struct Progress {
    thought_number: u64,
    total_thoughts: u64,
    next_thought_needed: bool,
    branches: Vec<String>,
    thought_history_length: u64,
}

/// The state between calls.
#[derive(Default)]
struct History {
    thoughts: u64,
    branches: Vec<String>,
}

impl History {
    fn add(&mut self, thought: &Thought) -> Result<Progress> {
        if let (Some(_), Some(branch)) = (thought.branch_from_thought, &thought.branch_id)
            && !branch.is_empty()
            && !self.branches.contains(branch)
        {
            if self.branches.len() == MAX_BRANCHES {
                return Err(Error::failed(format!("there are {MAX_BRANCHES} branches; go on with one of them")));
            }
            self.branches.push(branch.clone());
        }
        self.thoughts += 1;
        Ok(Progress {
            thought_number: thought.thought_number,
            total_thoughts: thought.total_thoughts.max(thought.thought_number),
            next_thought_needed: thought.next_thought_needed,
            branches: self.branches.clone(),
            thought_history_length: self.thoughts,
        })
    }
}

thread_local! {
    static HISTORY: RefCell<History> = RefCell::default();
}

/// Formats a thought for the log.
fn line(thought: &Thought, total: u64) -> String {
    let about = match (thought.is_revision, thought.branch_from_thought) {
        (Some(true), _) => {
            let of = thought.revises_thought.map_or_else(|| "an earlier one".to_owned(), |number| number.to_string());
            format!(", a revision of {of}")
        }
        (_, Some(from)) => format!(", branch {} from {from}", thought.branch_id.as_deref().unwrap_or("without a name")),
        _ => String::new(),
    };
    format!("thought {} of {total}{about}: {}", thought.thought_number, thought.thought)
}

struct SequentialThinking;

#[tools]
impl SequentialThinking {
    #[doc = "Thinks about a problem step by step, one call for each thought.\n\n\
             Use it for problems that take several steps: plans and designs, analyses whose course may have to be corrected, anything \
             whose extent is not clear at first.\n\n\
             - Begin with a guess of totalThoughts, and change it whenever you know better; you may go on after what seemed the end.\n\
             - A thought may be a step, a question about an earlier decision, a hypothesis, or its verification.\n\
             - To correct thought N, set isRevision and revisesThought = N. To try another way from thought N, set branchFromThought = N \
             and a branchId.\n\
             - Say where you are uncertain, and leave out what does not matter for the step.\n\
             - Verify your hypothesis by the thoughts that led to it, and set nextThoughtNeeded to false only when you have an answer \
             that satisfies you."]
    #[tool(title = "Sequential Thinking", read_only, destructive = false, idempotent, open_world = false, schema = SCHEMA)]
    fn sequentialthinking(call: &Call, thought: Thought) -> Result<String> {
        let progress = HISTORY.with_borrow_mut(|history| history.add(&thought))?;
        if progress.thought_history_length == 1 && progress.thought_number > 1 {
            call.log(
                Level::Warning,
                "this is not the first thought, but none before it is known, so thoughtHistoryLength and branches begin with it; \
                 instances that are reused keep them between calls, up to ten minutes apart (`instances = \"reused\"`)",
            );
        }
        if !env::var("DISABLE_THOUGHT_LOGGING").is_ok_and(|set| set.eq_ignore_ascii_case("true")) {
            call.log(Level::Debug, &line(&thought, progress.total_thoughts));
        }
        Ok(serde_json::to_string_pretty(&progress)?)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn thought(more: serde_json::Value) -> Result<Thought, serde_json::Error> {
        let mut all = json!({ "thought": "t", "nextThoughtNeeded": true, "thoughtNumber": 1, "totalThoughts": 3 });
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(all)
    }

    #[test]
    fn strings_count_as_what_they_say() {
        let given = json!({ "nextThoughtNeeded": "False", "thoughtNumber": " 5 ", "totalThoughts": "3.0", "isRevision": "TRUE" });
        let progress = History::default().add(&thought(given).unwrap()).unwrap();
        assert_eq!((progress.thought_number, progress.total_thoughts), (5, 5));
        assert!(!progress.next_thought_needed);
        for wrong in [
            json!({ "nextThoughtNeeded": "yes" }),
            json!({ "isRevision": 1 }),
            json!({ "thoughtNumber": "0" }),
            json!({ "thoughtNumber": 1.5 }),
            json!({ "totalThoughts": "many" }),
            json!({ "totalThoughts": null }),
            json!({ "revisesThought": "" }),
        ] {
            assert!(thought(wrong.clone()).is_err(), "{wrong}");
        }
        assert!(thought(json!({ "revisesThought": null, "isRevision": null, "branchId": null })).is_ok());
    }

    #[test]
    fn a_branch_is_named_once_and_their_number_is_bounded() {
        let mut history = History::default();
        let branch = |id: String| thought(json!({ "branchFromThought": 1, "branchId": id })).unwrap();
        for id in 0..MAX_BRANCHES {
            history.add(&branch(id.to_string())).unwrap();
        }
        assert_eq!(history.add(&branch("0".into())).unwrap().branches.len(), MAX_BRANCHES);
        assert!(history.add(&branch("one more".into())).is_err());
        assert_eq!(history.thoughts, MAX_BRANCHES as u64 + 1);
        assert_eq!(
            history.add(&thought(json!({ "branchId": "from nowhere" })).unwrap()).unwrap().branches.len(),
            MAX_BRANCHES
        );
    }

    #[test]
    fn the_log_tells_what_a_thought_is() {
        let revision = thought(json!({ "isRevision": true, "revisesThought": 2 })).unwrap();
        assert_eq!(line(&revision, 3), "thought 1 of 3, a revision of 2: t");
        let branch = thought(json!({ "branchFromThought": 2, "branchId": "b" })).unwrap();
        assert_eq!(line(&branch, 3), "thought 1 of 3, branch b from 2: t");
        assert_eq!(line(&thought(json!({})).unwrap(), 3), "thought 1 of 3: t");
    }
}
