//! Approval of calls by a person (human in the loop): what the person is asked, which calls an approval covers, and which approvals are
//! remembered. `methods::call` asks.

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context, Result};

use self::{kept::Kept, remembered::Principals, ticket::Tickets};
use wharf_base::{
    party::Party,
    places::{Occupant, Places, PoolRule},
    program::{self, Command},
};
use wharf_config::config::approvals::Remember;

pub mod answer;
pub mod kept;
pub mod remembered;
pub mod rule;
pub mod subject;
mod target;
pub mod ticket;

/// The time limit of the operator's program, which may have to wait for a person.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(120);
/// The most of these programs that run at once.
const MAX_COMMANDS: usize = 8;
/// The most calls that wait for the program's answer, or for their turn to ask it.
const MAX_WAITING: usize = 256;
/// The most that such a program may print.
const MAX_PRINTED_BYTES: usize = 1024;

/// The limit of running programs.
pub static COMMANDS: PoolRule = PoolRule {
    of: "running programs for approvals",
    number: "8",
    taker: "client",
    until: "the program has answered, or 120 s after the call began to wait",
    asking: "held while the program asks a person",
    gone: "given back, and the program is killed, when the call is given up",
    gives_way: "calls of clients that have been gone for 5 seconds, to clients for which fewer programs run and to further calls of the \
                same client; others wait for their turn, and the client for which the fewest programs run is next",
    old: Duration::MAX,
};

/// The limit of calls that wait for the program.
pub static WAITING: PoolRule = PoolRule {
    of: "calls that wait for the program for approvals",
    number: "256",
    taker: "client",
    until: "the program has answered, or 120 s after the call began to wait",
    asking: "held, since the call waits for the answer",
    gone: "given back when the call is given up",
    gives_way: "nothing; further calls are refused",
    old: Duration::MAX,
};

/// A person's yes to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Yes {
    /// How long it is valid for further calls.
    pub remember: Remember,
    /// Whether these may have any arguments. Otherwise the narrowest rule holds.
    pub any: bool,
}

impl Yes {
    /// A yes to one call.
    pub const ONCE: Self = Self { remember: Remember::Never, any: false };
}

/// The state of approvals, for as long as wharf runs.
pub struct Approvals {
    pub tickets: Tickets,
    /// Approvals that are valid until they are revoked. `None`: there is no file for them.
    pub kept: Option<Kept>,
    /// Approvals of clients without sessions, which are valid until wharf exits.
    pub principals: Principals,
    commands: Arc<Places>,
    waiting: Arc<Places>,
}

impl Approvals {
    /// Creates the state. `file` stores approvals that are valid until they are revoked.
    /// `process`: identifies this process.
    pub fn new(file: Option<PathBuf>, process: [u8; 16]) -> Self {
        Self {
            tickets: Tickets::new(process),
            kept: file.map(Kept::new),
            principals: Principals::default(),
            commands: Places::new(&COMMANDS, MAX_COMMANDS),
            waiting: Places::new(&WAITING, MAX_WAITING),
        }
    }

    /// Asks the operator's program about a call, which may give way if its client is gone. The program gets the call as JSON on stdin and
    /// answers with `yes`, `session` or `always`, and `any` after the last two for any arguments. Any other output is a no. The error says what failed.
    pub async fn ask_program(
        &self,
        (party, call): (Party, Arc<dyn Occupant>),
        command: &Command,
        told: &str,
        longest: Remember,
    ) -> Result<Option<Yes>> {
        let _waits = self.waiting.take(party)?;
        let asked = async {
            let _turn = self.commands.wait_for(party, call).await;
            program::run(command, told.as_bytes(), MAX_PRINTED_BYTES, COMMAND_TIMEOUT).await
        };
        let printed =
            tokio::time::timeout(COMMAND_TIMEOUT, asked).await.context("too many calls are waiting for it")??;
        let words: Vec<&str> = printed.split_whitespace().collect();
        let (remember, any) = match words.as_slice() {
            ["yes"] => (Remember::Never, false),
            ["session"] => (Remember::Session, false),
            ["session", "any"] => (Remember::Session, true),
            ["always"] => (Remember::Always, false),
            ["always", "any"] => (Remember::Always, true),
            _ => return Ok(None),
        };
        let remember = remember.min(longest);
        Ok(Some(Yes { remember, any: any && remember > Remember::Never }))
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test reads what its program wrote")]
mod tests {
    use futures_util::future::join_all;
    use wharf_base::places::GivesWay;

    use super::*;
    use wharf_base::party::named;

    /// A call whose client stays connected.
    struct Stays;

    impl Occupant for Stays {
        fn gives_way(&self, _: std::time::Instant) -> Option<GivesWay> {
            None
        }

        fn end(&self) {}
    }

    /// Returns a command that first appends a line to this file, and then does `then`.
    fn command(asked: &std::path::Path, then: &str) -> Command {
        let words = vec!["sh".into(), "-c".into(), format!("echo >> '{}'; {then}", asked.display())];
        Command::resolve(words, &|path| Ok(PathBuf::from(path))).unwrap()
    }

    #[tokio::test]
    async fn a_program_answers_with_the_words_that_it_was_told() {
        let folder = tempfile::tempdir().unwrap();
        let approvals = Approvals::new(None, [0; 16]);
        let yes = |remember, any| Some(Yes { remember, any });
        for (printed, longest, expected) in [
            ("yes", Remember::Always, Some(Yes::ONCE)),
            ("session", Remember::Always, yes(Remember::Session, false)),
            (" session  any ", Remember::Session, yes(Remember::Session, true)),
            ("always any", Remember::Always, yes(Remember::Always, true)),
            // The operator allows less than the program says.
            ("always any", Remember::Session, yes(Remember::Session, true)),
            ("always any", Remember::Never, Some(Yes::ONCE)),
            ("yes any", Remember::Always, None),
            ("session all", Remember::Always, None),
            ("session any more", Remember::Always, None),
            ("no", Remember::Always, None),
            ("", Remember::Always, None),
        ] {
            let says = command(&folder.path().join("asked"), &format!("echo '{printed}'"));
            let answer = approvals.ask_program((named("ann"), Arc::new(Stays)), &says, "", longest).await.unwrap();
            assert_eq!(answer, expected, "{printed}, {longest:?}");
        }
    }

    #[tokio::test]
    async fn the_question_of_another_client_begins_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let asked = folder.path().join("asked");
        let approvals = Approvals::new(None, [0; 16]);
        let (ann, ben) = (named("ann"), named("ben"));
        let (pending, yes) = (command(&asked, "sleep 600"), command(&asked, "echo yes"));
        let ask = |party, command| approvals.ask_program((party, Arc::new(Stays)), command, "", Remember::Never);
        let mut hers = Box::pin(join_all((0..300).map(|_| ask(ann, &pending))));
        tokio::select! {
            _ = &mut hers => panic!("none of them can end, except those that are refused"),
            his = async {
                while std::fs::read(&asked).unwrap_or_default().len() < 6 {
                    tokio::task::yield_now().await;
                }
                ask(ben, &yes).await
            } => assert_eq!(his.unwrap(), Some(Yes::ONCE)),
        }
        assert_eq!(std::fs::read(&asked).unwrap().len(), 7);
        assert_eq!(approvals.waiting.taken(), 192, "three quarters of those who wait");
        drop(hers);
        assert_eq!((approvals.waiting.taken(), approvals.commands.taken()), (0, 0));
    }
}
