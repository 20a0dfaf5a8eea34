//! Asking a person on the terminal. Anything but a clear yes is a deny.

use std::io::{BufRead as _, BufReader, Write as _};

use ccd_api::{BoxFuture, PermissionDecision, PermissionHandler, PermissionRequest};

use crate::output::printable;

/// Asks on the controlling terminal.
pub(crate) struct TerminalHandler;

impl PermissionHandler for TerminalHandler {
    fn decide(&self, request: PermissionRequest) -> BoxFuture<PermissionDecision> {
        Box::pin(async move {
            let question = question(&request);
            let answer = tokio::task::spawn_blocking(move || ask(&question)).await;
            match answer {
                Ok(Ok(true)) => PermissionDecision::allow(),
                Ok(Ok(false)) => PermissionDecision::deny("The user denied this."),
                Ok(Err(_)) | Err(_) => PermissionDecision::deny("Nobody could be asked."),
            }
        })
    }
}

fn question(request: &PermissionRequest) -> String {
    let input = request
        .tool_input
        .get("command")
        .and_then(|command| command.as_str())
        .map_or_else(|| request.tool_input.to_string(), str::to_owned);
    format!(
        "Claude wants to use {}:\n  {}\nAllow? [y/N] ",
        printable(&request.tool_name),
        printable(&input)
    )
}

fn ask(question: &str) -> std::io::Result<bool> {
    let tty = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/tty")?;
    (&tty).write_all(question.as_bytes())?;
    let mut line = String::new();
    BufReader::new(tty).read_line(&mut line)?;
    Ok(matches!(line.trim(), "y" | "Y" | "yes"))
}
