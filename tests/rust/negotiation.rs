//! Negotiations: the document's examples, and laws that hold for every model.
#![allow(clippy::unwrap_used)] // an unexpected value fails its test

use budgeteer::window::{Memory, ModelLimits, Negotiator, count_tools, model_limits};
use budgeteer::{ErrorKind, Estimate, Tool};

/// The document's three examples, by its own figures.
#[test]
fn worked_examples() {
    for (model, messages, requested, adjusted, overflows) in [
        ("llama3.2:3b", 5, 3_000, 3_000, false),
        ("gpt-3.5-turbo", 50, 5_000, 3_285, false),
        ("deepseek-coder:6.7b", 60, 3_000, 500, true),
    ] {
        let one = Negotiator::new(model_limits(model)).message_count(messages);
        let found = one.negotiate(requested).unwrap();
        assert_eq!(
            (adjusted, overflows),
            (found.adjusted_max_output_tokens, found.overflows_window)
        );
        assert_eq!(adjusted < requested, found.was_reduced);
    }
}

#[test]
fn strict_negotiations_say_the_arithmetic() {
    let one = Negotiator::new(model_limits("deepseek-coder:6.7b")).message_count(60).strict(true);
    let error = one.negotiate(3_000).unwrap_err();
    assert_eq!(ErrorKind::BudgetExhausted, error.kind());
    assert_eq!(
        "model \"deepseek-coder:6.7b\" has a window of 16000 tokens (16000 of input): 15500 of \
         input (15000 messages + 500 system + 0 memories + 0 tools) + 500 of output + 100 of \
         margin = 16100",
        error.to_string()
    );
    let memories = [Memory::new("x").importance(f64::NAN)];
    let error = one.memories(&memories).negotiate(1).unwrap_err();
    assert_eq!(ErrorKind::InvalidArgument, error.kind());
}

/// A limit of memories that is no number is refused, listed or only numbered as
/// they are.
#[test]
fn limits_of_memories_are_numbers() {
    let one = Negotiator::new(model_limits("gpt-4")).memory_count(3);
    for wrong in [one.clone().min_importance(f64::NAN), one.max_memory_age_days(f64::NAN)] {
        assert_eq!(ErrorKind::InvalidArgument, wrong.negotiate(1).unwrap_err().kind());
    }
}

#[test]
fn negotiations_do_not_overflow() {
    let one = Negotiator::new(ModelLimits::new("any", usize::MAX));
    for count in [0, 1, usize::MAX] {
        let found = one.clone().message_count(count).system_tokens(count).negotiate(count).unwrap();
        assert_eq!(count == usize::MAX, found.overflows_window);
        assert!(one.clone().system_tokens(count).safe_message_count(count) > 0);
    }
}

/// An input that is as large as the model takes it does not overflow.
#[test]
fn the_largest_input_fits() {
    let limits = ModelLimits::new("any", 1_000).max_input_tokens(600);
    for (system, overflows) in [(600, false), (601, true)] {
        let one = Negotiator::new(limits.clone()).system_tokens(system).strict(true);
        assert_eq!(overflows, one.min_output_tokens(1).safety_margin(0).negotiate(1).is_err());
    }
}

/// Two zeros are the same importance: the first of the memories is chosen.
#[test]
fn zeros_are_as_important() {
    let memories = [-0.0, 0.0].map(|zero| Memory::new("tea").importance(zero));
    let one = Negotiator::new(model_limits("gpt-4o")).memories(&memories);
    let found = one.min_importance(-1.0).max_memory_tokens(1).negotiate(9).unwrap();
    assert_eq!(vec![0], found.memory_indices);
    assert_eq!("tea", memories[0].text());
}

/// Tools stand in a message of their own where there is no system message.
#[test]
fn tools_cost_what_they_do_without_a_system_message() {
    let tools = [Tool::new("search").description("Searches the web.")];
    for system in [0, 1] {
        let one = Negotiator::new(model_limits("gpt-4o")).system_tokens(system).tools(&tools);
        let tokens = count_tools(&tools, &Estimate::CharsDiv4, system > 0);
        let found = one.negotiate(9).unwrap();
        assert_eq!((tokens, false), (found.tool_tokens, found.is_exact));
    }
    assert_ne!(
        count_tools(&tools, &Estimate::CharsDiv4, false),
        count_tools(&tools, &Estimate::CharsDiv4, true)
    );
}

/// What a negotiator shows names the model and what was set.
#[test]
fn a_negotiator_shows_its_model() {
    let shown = format!("{:?}", Negotiator::new(model_limits("gpt-4o")).safety_margin(7));
    assert!(shown.contains("gpt-4o") && shown.contains("safety_margin: Some(7)"), "{shown}");
}
