//! The JSON object that 2.1.316 gives to a status line command.

use std::sync::Arc;

use ccd_model::observation::{StatusReport, UsageWindow};
use serde::Deserialize;

use crate::statusline::Read;

/// Largest amount that is told, so that the integer never overflows.
const MOST: f64 = 1e15;

#[derive(Deserialize)]
struct Body {
    session_id: Option<Arc<str>>,
    version: Option<Arc<str>>,
    model: Option<Model>,
    effort: Option<Effort>,
    cost: Option<Cost>,
    context_window: Option<Context>,
    rate_limits: Option<Limits>,
}

#[derive(Deserialize)]
struct Model {
    id: Option<Arc<str>>,
    display_name: Option<Arc<str>>,
}

#[derive(Deserialize)]
struct Effort {
    level: Option<Arc<str>>,
}

#[derive(Deserialize)]
struct Cost {
    total_cost_usd: Option<f64>,
}

#[derive(Deserialize)]
struct Context {
    current_usage: Option<Tokens>,
    context_window_size: Option<u64>,
    used_percentage: Option<f64>,
}

#[derive(Deserialize)]
struct Tokens {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct Limits {
    five_hour: Option<Window>,
    seven_day: Option<Window>,
}

#[derive(Deserialize)]
struct Window {
    used_percentage: f64,
    resets_at: Option<f64>,
}

/// `amount` times `scale` as an integer; nothing for what is no amount.
fn scaled(amount: f64, scale: f64) -> Option<u64> {
    let scaled = amount * scale;
    (scaled.is_finite() && (0.0..=MOST).contains(&scaled)).then(|| scaled.round() as u64)
}

fn centipercent(percent: f64) -> Option<u32> {
    scaled(percent, 100.0).and_then(|value| u32::try_from(value).ok())
}

fn window(window: Window) -> Option<UsageWindow> {
    Some(UsageWindow {
        used_centipercent: centipercent(window.used_percentage)?,
        resets_at: window
            .resets_at
            .and_then(|at| scaled(at, 1.0))
            .and_then(|at| i64::try_from(at).ok()),
    })
}

fn total(tokens: Tokens) -> u64 {
    [
        tokens.input_tokens,
        tokens.output_tokens,
        tokens.cache_creation_input_tokens,
        tokens.cache_read_input_tokens,
    ]
    .into_iter()
    .flatten()
    .fold(0, u64::saturating_add)
}

pub(super) fn read(body: &str) -> Read {
    let body: Body = serde_json::from_str(body)?;
    let (model, model_name) = body
        .model
        .map_or((None, None), |model| (model.id, model.display_name));
    let context = body.context_window;
    let size = context
        .as_ref()
        .and_then(|context| context.context_window_size);
    let used = context
        .as_ref()
        .and_then(|context| context.used_percentage)
        .and_then(centipercent);
    let (five_hour, seven_day) = body
        .rate_limits
        .map_or((None, None), |limits| (limits.five_hour, limits.seven_day));
    let report = StatusReport {
        model,
        model_name,
        effort: body.effort.and_then(|effort| effort.level),
        version: body.version,
        cost_microusd: body
            .cost
            .and_then(|cost| cost.total_cost_usd)
            .and_then(|usd| scaled(usd, 1_000_000.0)),
        context_tokens: context.and_then(|context| context.current_usage).map(total),
        context_size: size,
        context_used_centipercent: used,
        five_hour: five_hour.and_then(window),
        seven_day: seven_day.and_then(window),
    };
    Ok((body.session_id, report))
}
