//! Where a transcript lies: the folder name that Claude makes of a working directory.

use std::path::{Path, PathBuf};

/// The path rules of a profile.
pub(crate) struct PathTable {
    /// Folder of all projects in the configuration directory.
    pub(crate) projects: &'static str,
    pub(crate) extension: &'static str,
    /// Longest folder name before it is cut and a hash is added, UTF-16 units.
    pub(crate) longest_slug: usize,
}

/// The transcript of `session_id` for the real path of a working directory.
pub(crate) fn transcript(
    table: &PathTable,
    config_dir: &Path,
    real_cwd: &str,
    session_id: &str,
) -> PathBuf {
    config_dir
        .join(table.projects)
        .join(slug(table, real_cwd))
        .join(format!("{session_id}.{}", table.extension))
}

/// Each UTF-16 unit that is no ASCII letter or digit becomes a dash; a long name is cut and ends in a hash of the path.
fn slug(table: &PathTable, cwd: &str) -> String {
    let mut slug = String::with_capacity(cwd.len());
    for c in cwd.chars() {
        if c.is_ascii_alphanumeric() {
            slug.push(c);
        } else {
            slug.extend(std::iter::repeat_n('-', c.len_utf16()));
        }
    }
    if slug.len() <= table.longest_slug {
        return slug;
    }
    // The slug is ASCII: its bytes are UTF-16 units.
    slug.truncate(table.longest_slug);
    let hash = cwd.encode_utf16().fold(0_i32, |hash, unit| {
        hash.wrapping_shl(5)
            .wrapping_sub(hash)
            .wrapping_add(i32::from(unit))
    });
    slug.push('-');
    slug.push_str(&base36(hash.unsigned_abs()));
    slug
}

fn base36(mut number: u32) -> String {
    let mut digits = Vec::new();
    loop {
        digits.extend(char::from_digit(number % 36, 36));
        number /= 36;
        if number == 0 {
            break;
        }
    }
    digits.iter().rev().collect()
}
