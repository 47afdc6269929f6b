//! Where output goes, and what stands before its lines.

use super::{Plan, PlanError, RunOptions};
use crate::streams::label::LabelText;

/// Takes over where output goes.
pub(super) fn take_output(plan: &mut Plan, block: &RunOptions) -> Result<(), PlanError> {
    for word in &block.output {
        let lower = word.to_ascii_lowercase();
        match lower.as_str() {
            "tag" | "label" | "rank" => plan.label = true,
            "timestamp" => plan.timestamps = true,
            _ if plan.files.set_word(word)? => {}
            _ => {
                return Err(PlanError::Text(format!(
                    "--output {word}: it must be \"tag\", \"timestamp\", \"merge\", \"file=NAME\" or \"dir=DIR\""
                )));
            }
        }
    }
    if let Some(name) = &block.output_filename {
        plan.files.set_ranked(name)?;
    }
    for (stream, pattern) in [&block.outfile_pattern, &block.errfile_pattern].into_iter().enumerate() {
        if let Some(pattern) = pattern {
            plan.files.set_pattern(stream, pattern)?;
        }
    }
    plan.files.merged |= block.merge;
    plan.timestamps |= block.timestamps;
    if let Some(pattern) = &block.prepend_pattern {
        plan.prefix = Some(LabelText::of(pattern)?);
    }
    Ok(())
}

/// Whether `--display` lists bindings, which Open MPI shows so.
pub(super) fn shows_bindings(block: &RunOptions) -> bool {
    let shown = block.display.as_deref().unwrap_or_default();
    shown.split(',').any(|what| matches!(what, "bind" | "bindings"))
}
