//! The screen of 2.1.316: glyphs, patterns, titles and footers of the classic renderer, and the tmux formats that guard keys.

use ccd_model::screen::Gate;
use ccd_ports::session::GuardFormats;

use crate::screen::{
    DialogKind, FooterTable, Pattern, ScreenTable, StatusKind, StatusRow, Title, TitleMatch,
};

/// The composer owns the keys: its mark (with a no-break space, the history has an ordinary one) stands at or above the cursor
/// and no dialog is painted. No comma and no brace inside the patterns: tmux would take them for its own.
const GUARD_COMPOSER: &str = concat!(
    "#{&&:#{C/r:^❯\u{a0}},",
    "#{&&:#{e|<=:#{C/r:^❯\u{a0}},#{e|+:#{cursor_y},1}},",
    "#{==:#{C/r:^( (❯ [0-9]|Esc to cancel|Do you want|Enter to confirm)|Enter to select|Ready to submit)},0}}}",
);
/// The column of the cursor in an empty composer, placeholder or not.
const GUARD_EMPTY: &str = "#{==:#{cursor_x},2}";
/// A spinner or a banner in its place, or the title that turns while a turn runs. Model text never has these glyphs in column 0.
const GUARD_BUSY: &str = concat!(
    "#{||:#{C/r:^(·|✢|[*]|✶|✻|✽) .*(…|Retrying in|Waiting for API|No response from)},",
    // While text streams the spinner can be gone; with a draft in the composer the hint is.
    "#{||:#{C/r:^  (⏸|⏵⏵) .* on .*esc to interrupt},#{m/r:^(◐|◑),#{pane_title}}}}",
);
/// The composer is taller than the pane: no mark, no dialog, and the first rule of the whole screen is the one right below the cursor. A
/// dialog has its first rule above the cursor, and a rule in model text is indented.
const GUARD_TALL: &str = concat!(
    "#{&&:#{==:#{C/r:^❯\u{a0}},0},",
    "#{&&:#{==:#{C/r:^────────────────────},#{e|+:#{cursor_y},2}},",
    "#{==:#{C/r:^( (❯ [0-9]|Esc to cancel|Do you want|Enter to confirm)|Enter to select|Ready to submit)},0}}}",
);
/// The row of a dialog's own line. Anchored where neither model text nor drafts reach: both are indented by two.
const GUARD_DIALOG: &str = "#{C/r:^( (❯ [0-9]|Esc to cancel|Do you want|Enter to confirm)|Enter to select|Ready to submit)}";

pub(super) fn guard_formats() -> GuardFormats {
    GuardFormats {
        composer: GUARD_COMPOSER.to_owned(),
        empty: GUARD_EMPTY.to_owned(),
        busy: GUARD_BUSY.to_owned(),
        tall: GUARD_TALL.to_owned(),
        dialog: GUARD_DIALOG.to_owned(),
    }
}

static STATUS: [StatusRow; 7] = [
    StatusRow {
        pattern: Pattern::new(
            r"^✻ (?P<reason>.+) · Retrying in (?:(?P<minutes>[0-9]+)m )?(?P<seconds>[0-9]+)s(?: \(.*\))? · attempt (?P<attempt>[0-9]+)/(?P<max>[0-9]+)$",
        ),
        kind: StatusKind::Retrying,
    },
    StatusRow {
        pattern: Pattern::new(
            r"^✻ Waiting for API response · will retry in .+ · check your network$",
        ),
        kind: StatusKind::Stalled("Waiting for API response"),
    },
    StatusRow {
        pattern: Pattern::new(
            r"^✻ No response from the API after .+ · retrying, waiting up to .+ · attempt [0-9]+/[0-9]+$",
        ),
        kind: StatusKind::Stalled("No response from the API"),
    },
    StatusRow {
        pattern: Pattern::new(r"^✻ .+ · next try in .+ · attempt [0-9]+(?: · esc to interrupt)?$"),
        kind: StatusKind::Stalled("Waiting for capacity"),
    },
    StatusRow {
        pattern: Pattern::new(r"^✻ Waiting for [0-9]+ background agents? to finish$"),
        kind: StatusKind::WaitingForAgents,
    },
    StatusRow {
        pattern: Pattern::new(
            r"^✻ (?:Baked|Brewed|Churned|Cogitated|Cooked|Crunched|Sautéed|Worked) for (?:[0-9]+h )?(?:[0-9]+m )?[0-9]+s(?: · done [0-9]+:[0-9]{2} [AP]M)?(?: · [0-9]+ shells? still running)?$",
        ),
        kind: StatusKind::Done,
    },
    StatusRow {
        pattern: Pattern::new(r"^[·✢*✳✶✻✽] .+…(?: \(.*\)?)?$"),
        kind: StatusKind::Spinner,
    },
];

const fn title(indent: usize, matching: TitleMatch, text: &'static str, kind: DialogKind) -> Title {
    Title {
        indent,
        matching,
        text,
        kind,
    }
}

const fn permission(text: &'static str) -> Title {
    title(1, TitleMatch::Word, text, DialogKind::Permission)
}

const fn modal(text: &'static str) -> Title {
    title(2, TitleMatch::Tabs, text, DialogKind::Modal)
}

const fn gate(matching: TitleMatch, text: &'static str, gate: Gate) -> Title {
    title(2, matching, text, DialogKind::Gate(gate))
}

static TITLES: [Title; 47] = [
    // Permissions.
    permission("Bash command"),
    permission("Edit file"),
    permission("Create file"),
    permission("Overwrite file"),
    permission("Read file"),
    permission("Fetch"),
    permission("Tool use"),
    permission("Network request outside of sandbox"),
    title(
        2,
        TitleMatch::Exact,
        "Network request outside of sandbox",
        DialogKind::Permission,
    ),
    // Questions: the tab row, or what is below the second rule when the first is above the pane.
    title(0, TitleMatch::Prefix, "←", DialogKind::Question),
    title(0, TitleMatch::Prefix, "☐", DialogKind::Question),
    title(0, TitleMatch::Prefix, "☒", DialogKind::Question),
    title(1, TitleMatch::Prefix, "☐", DialogKind::Question),
    title(1, TitleMatch::Prefix, "☒", DialogKind::Question),
    title(
        2,
        TitleMatch::Contains,
        "Chat about this",
        DialogKind::Question,
    ),
    // Plans.
    title(1, TitleMatch::Exact, "Ready to code?", DialogKind::Plan),
    title(1, TitleMatch::Exact, "Exit plan mode?", DialogKind::Plan),
    title(
        1,
        TitleMatch::Prefix,
        "Claude has written up a plan and is ready to execute.",
        DialogKind::Plan,
    ),
    // Start-up gates.
    title(
        1,
        TitleMatch::Exact,
        "Accessing workspace:",
        DialogKind::Gate(Gate::Trust),
    ),
    gate(
        TitleMatch::Prefix,
        "WARNING: Claude Code running in Bypass Permissions mode",
        Gate::Bypass,
    ),
    gate(
        TitleMatch::Exact,
        "Detected a custom API key in your environment",
        Gate::ApiKey,
    ),
    gate(
        TitleMatch::Prefix,
        "New MCP server found in this project",
        Gate::McpServer,
    ),
    gate(
        TitleMatch::Contains,
        "new MCP servers found in this project",
        Gate::McpServer,
    ),
    gate(TitleMatch::Exact, "Settings Error", Gate::Settings),
    gate(TitleMatch::Exact, "Settings Warning", Gate::Settings),
    gate(
        TitleMatch::Exact,
        "Allow external CLAUDE.md file imports?",
        Gate::Imports,
    ),
    title(
        2,
        TitleMatch::Exact,
        "Resume session",
        DialogKind::GateOrModal(Gate::Resume),
    ),
    // Menus with a meaning of their own.
    title(
        2,
        TitleMatch::Exact,
        "What do you want to do?",
        DialogKind::UsageLimitMenu,
    ),
    title(
        2,
        TitleMatch::Exact,
        "Background work is running",
        DialogKind::Exit,
    ),
    // Modals that Escape closes.
    modal("Add directory to workspace"),
    modal("Background"),
    modal("Effort"),
    modal("Export conversation"),
    modal("Help"),
    modal("Hooks"),
    modal("Login"),
    modal("Memory"),
    modal("Permissions"),
    modal("Plugins"),
    modal("Rewind"),
    modal("Sandbox"),
    modal("Select model"),
    modal("Settings"),
    modal("Shell details"),
    modal("Skills"),
    modal("Theme"),
    modal("↯ Fast mode"),
];

pub(super) static SCREEN: ScreenTable = ScreenTable {
    size: (250, 80),
    rule: '─',
    dash: '╌',
    prompt_mark: "❯\u{a0}",
    shell_mark: "!\u{a0}",
    continuation: "  ",
    placeholders: &[("Press up to edit queued messages", true)],
    prompt_row: "❯ ",
    queue_hint: "  ctrl+enter to send now",
    interrupted: "  ⎿ \u{a0}Interrupted · What should Claude do instead?",
    status: &STATUS,
    footer: FooterTable {
        mode: Pattern::new(
            r"^  (?:-- [A-Z ]+ -- )?(?:⏵⏵|⏸) (?P<mode>auto mode|manual mode|accept edits|plan mode|bypass permissions|don't ask) on(?: · | \(|\s|$)",
        ),
        modes: &[
            ("manual mode", "default"),
            ("accept edits", "acceptEdits"),
            ("plan mode", "plan"),
            ("auto mode", "auto"),
            ("don't ask", "dontAsk"),
            ("bypass permissions", "bypassPermissions"),
        ],
        replacements: &[
            "  ! for shell mode",
            "  paste again to expand",
            "  Press Ctrl-C again to exit",
            "  Press Ctrl-D again to exit",
        ],
        logged_out: "Not logged in · Run /login",
    },
    titles: &TITLES,
    permission_indent: 1,
    permission_questions: &[" Do you want to "],
    onboarding: &[
        (" Unable to connect to Anthropic services", Gate::Offline),
        (" Let's get started.", Gate::Onboarding),
        (" Select login method:", Gate::Onboarding),
        (" Security notes:", Gate::Onboarding),
    ],
    composer_like: &[("  enter to return · space to reply", "Agents view")],
    busy_titles: &['◐', '◑'],
    idle_titles: &['✳'],
};
