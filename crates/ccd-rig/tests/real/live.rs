//! One live session of a test: waiting that fails loudly, with what the session saw and shows.
//!
//! What lives here: questions to one session. What never does: a test, or the rig (see `stage`).

use std::{future::Future, ops::Deref, time::Duration};

use ccd_api::{
    ClaudeSession, Error, Event, EventKind, ExitInfo, Options, Prompt, Turn, TurnOutcome,
    TurnStatus,
};

use crate::stage::PATIENCE;

/// The longest part of an event or of the screen that a failure shows.
const SHOWN: usize = 600;

/// A session, with everything a failed expectation has to tell.
pub(crate) struct Live(ClaudeSession);

impl Deref for Live {
    type Target = ClaudeSession;

    fn deref(&self) -> &ClaudeSession {
        &self.0
    }
}

impl Live {
    pub(crate) async fn start(options: Options) -> Result<Self, Error> {
        ClaudeSession::start(options).await.map(Self)
    }

    /// Waits for `future`, at most `limit`; a failure tells the events, the state and the screen.
    pub(crate) async fn within<T>(
        &self,
        what: &str,
        limit: Duration,
        future: impl Future<Output = T>,
    ) -> T {
        match tokio::time::timeout(limit, future).await {
            Ok(value) => value,
            Err(_) => self.fail(&format!("{what}: not within {limit:?}")).await,
        }
    }

    /// Fails with the whole story.
    pub(crate) async fn fail(&self, what: &str) -> ! {
        panic!("{what}\n{}", self.story().await)
    }

    /// Checks a condition; a failure tells the whole story.
    pub(crate) async fn check(&self, holds: bool, what: &str) {
        if !holds {
            self.fail(what).await;
        }
    }

    async fn story(&self) -> String {
        let mut story = String::from("events:\n");
        for event in self.seen().await {
            let text = serde_json::to_string(&event).unwrap();
            story.extend(text.chars().take(SHOWN).chain("\n".chars()));
        }
        let state = self.state();
        let screen = self.debug().screen;
        let screen: Vec<&str> = screen
            .lines()
            .filter(|line| !line.trim().is_empty())
            .collect();
        story + &format!("state: {state:?}\nscreen:\n{}", screen.join("\n"))
    }

    /// The events so far.
    pub(crate) async fn seen(&self) -> Vec<Event> {
        let mut stream = self.events(1);
        let mut seen = Vec::new();
        // What is there already comes at once.
        while let Ok(Some(event)) =
            tokio::time::timeout(Duration::from_millis(20), stream.next()).await
        {
            seen.push(event);
        }
        seen
    }

    /// Waits for an event, one of the past included.
    pub(crate) async fn event<R>(
        &self,
        what: &str,
        mut found: impl FnMut(&EventKind) -> Option<R>,
    ) -> R {
        let mut stream = self.events(1);
        let search = async {
            while let Some(event) = stream.next().await {
                if let Some(result) = found(&event.kind) {
                    return Some(result);
                }
            }
            None
        };
        match self.within(what, PATIENCE, search).await {
            Some(result) => result,
            None => {
                self.fail(&format!("{what}: not before the end of the session"))
                    .await
            }
        }
    }

    /// Waits until the main thread's text has reached `text`.
    pub(crate) async fn delta(&self, text: &str) {
        let mut so_far = String::new();
        self.event(&format!("a delta with {text:?}"), |kind| match kind {
            EventKind::MessageDelta { text: delta, .. } => {
                so_far.push_str(delta);
                so_far.contains(text).then_some(())
            }
            _ => None,
        })
        .await;
    }

    pub(crate) async fn prompt(&self, prompt: impl Into<Prompt>) -> TurnOutcome {
        let turn = self.send_now(prompt).await;
        self.done(&turn).await
    }

    /// Sends; acceptance must be quick whatever runs.
    pub(crate) async fn send_now(&self, prompt: impl Into<Prompt>) -> Turn {
        match self
            .within(
                "the acceptance of a prompt",
                Duration::from_secs(5),
                self.send(prompt),
            )
            .await
        {
            Ok(turn) => turn,
            Err(error) => self.fail(&format!("the prompt was refused: {error}")).await,
        }
    }

    pub(crate) async fn done(&self, turn: &Turn) -> TurnOutcome {
        self.within("the end of a turn", PATIENCE, turn.done())
            .await
    }

    /// Runs a prompt that must complete with this answer.
    pub(crate) async fn completes(&self, prompt: impl Into<Prompt>, answer: &str) -> TurnOutcome {
        let outcome = self.prompt(prompt).await;
        self.is(&outcome, TurnStatus::Completed).await;
        self.check(
            outcome.text == answer,
            &format!("the answer is {:?}, not {answer:?}", outcome.text),
        )
        .await;
        outcome
    }

    /// Checks how a turn ended.
    pub(crate) async fn is(&self, outcome: &TurnOutcome, status: TurnStatus) {
        self.check(
            outcome.status == status,
            &format!("{status:?} was expected: {outcome:?}"),
        )
        .await;
    }

    /// Closes gracefully; the end must be clean.
    pub(crate) async fn closes(&self) -> ExitInfo {
        let exit = self.within("the close", PATIENCE, self.close()).await;
        self.check(exit.clean, &format!("the close was not clean: {exit:?}"))
            .await;
        exit
    }

    /// The composer of the last screen holds nothing.
    pub(crate) fn composer_is_empty(&self) -> bool {
        let screen = self.debug().screen;
        let composer = screen
            .lines()
            .rfind(|line| line.starts_with("❯\u{a0}") || line.starts_with("!\u{a0}"));
        composer.is_some_and(|line| line.trim_end_matches([' ', '\u{a0}']) == "❯")
    }
}

/// The reason of an outcome's error.
pub(crate) fn reason(outcome: &TurnOutcome) -> &str {
    outcome
        .error
        .as_ref()
        .map_or("", |error| error.details.reason.as_str())
}
