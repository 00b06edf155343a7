//! Events: what an operator is told.

use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex};

use budgeteer::window::{Negotiator, model_limits};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Keeps level and fields of every event.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<(Level, String)>>>);

struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, "{}={value:?} ", field.name()).expect("a string takes all");
    }
}

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields(String::new());
        event.record(&mut fields);
        self.0.lock().expect("no test panicked").push((*event.metadata().level(), fields.0));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

fn events(work: impl FnOnce()) -> Vec<(Level, String)> {
    let log = Log::default();
    tracing::subscriber::with_default(log.clone(), work);
    log.0.lock().expect("no test panicked").clone()
}

#[test]
fn unknown_models_are_warned_of_once() {
    let events = events(|| {
        for _ in 0..3 {
            assert!(!model_limits("nobody-knows-this").known);
            assert!(model_limits("gpt-4").known);
        }
    });
    let [(Level::WARN, fields)] = &*events else { panic!("{events:?}") };
    assert!(fields.contains("\"nobody-knows-this\""), "{fields}");
}

#[test]
fn negotiations_say_their_figures() {
    let negotiate = |requested| {
        let one = Negotiator::new(model_limits("gpt-3.5-turbo")).message_count(50);
        one.negotiate(requested).unwrap();
    };
    let events = events(|| [300, 5_000].into_iter().for_each(negotiate));
    let [(Level::INFO, kept), (Level::WARN, reduced)] = &*events else { panic!("{events:?}") };
    assert!(!kept.contains("REDUCED") && reduced.contains("REDUCED"));
    for figure in [
        "model=\"gpt-3.5-turbo\"",
        "context_window=16385",
        "input_token_count=13000",
        "message_count=50",
        "memory_count=0",
        "safety_margin=100",
        "available_tokens=3285",
        "requested_max_output_tokens=5000",
        "adjusted_max_output_tokens=3285",
    ] {
        assert!(reduced.contains(figure), "{figure}: {reduced}");
    }
}
