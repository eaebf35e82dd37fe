//! Long work shows a bar on stderr, for people who watch.

use crate::output::{Format, Output};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use onus_app::progress::Progress;
use std::io::IsTerminal;

/// A bar that appears only where somebody can see it.
#[derive(Debug)]
pub(crate) struct Bar {
    visible: bool,
    bar: Option<ProgressBar>,
}

impl Bar {
    pub(crate) fn new(out: &Output) -> Bar {
        let visible = out.format == Format::Human && !out.quiet && std::io::stderr().is_terminal();
        Bar { visible, bar: None }
    }
}

impl Progress for Bar {
    fn begin(&mut self, what: &str, total: Option<u64>) {
        if !self.visible {
            return;
        }
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr_with_hz(10));
        let template =
            if total.is_some() { "{msg} {wide_bar} {pos}/{len} ({eta})" } else { "{spinner} {msg} {pos}" };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(what.to_owned());
        self.bar = Some(bar);
    }

    fn at(&mut self, done: u64) {
        if let Some(bar) = &self.bar {
            bar.set_position(done);
        }
    }

    fn end(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}
