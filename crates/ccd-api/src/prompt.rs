//! A prompt and how it is to be delivered.

/// Text for the model. Plain strings convert into it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    pub(crate) text: String,
    pub(crate) as_text: bool,
}

impl Prompt {
    /// A prompt. Text that Claude Code would take as a slash command or as a word that ends the program is refused.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            as_text: false,
        }
    }

    /// Delivers even a slash command as plain text, with one leading space. Words that end the program stay refused: nothing protects them.
    #[must_use]
    pub fn as_text(mut self) -> Self {
        self.as_text = true;
        self
    }
}

impl From<&str> for Prompt {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for Prompt {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl From<&String> for Prompt {
    fn from(text: &String) -> Self {
        Self::new(text.as_str())
    }
}
