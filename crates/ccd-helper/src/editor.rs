//! The editor mode: Claude's external editor, whose text comes from the host.
//!
//! What lives here: the file's content to the host, the host's text into the file. What never does: printing (stdout
//! and stderr are the terminal Claude paints on), or touching the file before the whole text has arrived.

use std::fs::{File, OpenOptions};
use std::io::{BufReader, Read as _, Seek as _, Write as _};
use std::os::unix::net::UnixStream;

use crate::MAX_BODY;
use crate::args::EditorArgs;
use crate::frame::{self, EditReply, FrameError};

pub(crate) fn run(args: &EditorArgs) -> Result<(), FrameError> {
    // Opened for writing at once: a file that could not take the text fails before the host hands it out.
    let mut file = OpenOptions::new().read(true).write(true).open(&args.file)?;
    let mut content = Vec::new();
    (&mut file)
        .take(MAX_BODY as u64 + 1)
        .read_to_end(&mut content)?;
    let mut stream = UnixStream::connect(&args.socket)?;
    frame::write_edit(&mut stream, &content)?;
    let mut reader = BufReader::new(stream);
    match frame::read_reply(&mut reader)? {
        EditReply::Text(text) => replace(&mut file, &text),
        EditReply::Keep => Ok(()),
    }
    // The connection closes only here, after the file is written: that is how the host learns of the end.
}

fn replace(file: &mut File, text: &[u8]) -> Result<(), FrameError> {
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(text)?;
    Ok(())
}
