//! What the chat template of a model writes around messages, by its family.

/// What stands around the messages of one family of models.
///
/// A special token counts 1, and so does a line end that stands between two of
/// them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    /// The special tokens and line ends of each message.
    pub(super) special: usize,
    /// The other text of each message, apart from its role and content.
    pub(super) text: &'static str,
    /// Whether the role is written out, rather than being a special token.
    pub(super) has_role: bool,
    /// The tokens of a name beside its text.
    pub(super) per_name: isize,
    /// The tokens of a tool call beside the texts in it.
    pub(super) per_call: usize,
    /// The tokens of a tool result beside those of a message.
    pub(super) per_result: usize,
    /// The special tokens before the first message.
    pub(super) start: usize,
    /// The text that the template writes before the first message.
    pub(super) prelude: &'static str,
    /// The special tokens that prime the reply.
    pub(super) reply: usize,
    /// The text that primes it.
    pub(super) reply_text: &'static str,
    /// Whether a message takes exactly this, as far as is known.
    pub(super) is_exact: bool,
}

/// The rule that OpenAI publishes.
const OPENAI: Frame = Frame {
    special: 3,
    text: "",
    has_role: true,
    per_name: 1,
    per_call: 0,
    per_result: 0,
    start: 0,
    prelude: "",
    reply: 3,
    reply_text: "",
    is_exact: true,
};

const UNKNOWN: Frame = Frame { is_exact: false, ..OPENAI };

/// The oldest chat model of OpenAI.
const OLDEST: Frame = Frame { special: 4, per_name: -1, ..OPENAI };

/// What was measured for Claude Opus 4.7.
const OPUS_4_7: Frame = Frame { start: 4, ..UNKNOWN };

const QWEN: Frame = Frame {
    special: 4,
    per_call: 13,
    per_result: 4,
    start: 3,
    prelude: "system\nYou are Qwen, created by Alibaba Cloud. You are a helpful assistant.",
    reply: 1,
    reply_text: "assistant\n",
    ..UNKNOWN
};

/// It has no words of its own, and an empty thought where it is not to think.
const QWEN3: Frame = Frame { start: 0, prelude: "", reply: 5, ..QWEN };

const LLAMA3: Frame = Frame {
    text: "\n\n",
    per_call: 10,
    per_result: 5,
    start: 4,
    prelude: "system\n\nCutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n",
    reply: 2,
    reply_text: "assistant\n\n",
    ..UNKNOWN
};

const MISTRAL: Frame =
    Frame { has_role: false, per_call: 16, per_result: 10, start: 1, reply: 0, ..UNKNOWN };

/// Tokenizer v1 has no special tokens for `[INST]`.
const MISTRAL_OLD: Frame = Frame { special: 8, ..MISTRAL };

const GEMMA: Frame = Frame {
    special: 4,
    per_call: 8,
    per_result: 5,
    start: 1,
    reply: 1,
    reply_text: "model\n",
    ..UNKNOWN
};

const DEEPSEEK: Frame = Frame {
    special: 2,
    text: "\n\n",
    has_role: false,
    per_call: 11,
    per_result: 3,
    start: 1,
    reply: 2,
    reply_text: "\n",
    ..UNKNOWN
};

const HARMONY: Frame = Frame {
    special: 4,
    text: "final",
    per_call: 10, // and what is said beside it is a message of its own
    per_result: 11,
    start: 3,
    prelude: "systemYou are ChatGPT, a large language model trained by OpenAI.\n\
              Knowledge cutoff: 2024-06\nCurrent date: 2025-06-28\n\nReasoning: medium\n\n\
              # Valid channels: analysis, commentary, final. Channel must be included for every \
              message.\nCalls to these tools must go to the commentary channel: 'functions'.\
              # Instructions\n\n", // before the first message of the system
    reply: 1,
    reply_text: "assistant",
    ..UNKNOWN
};

/// The frames by a part of the model's name; the first that is found counts.
/// DeepSeek comes first of the open ones, as what is distilled from it has its
/// template.
const FAMILIES: [(&str, &Frame); 22] = [
    ("opus-4-7", &OPUS_4_7),
    ("opus-4.7", &OPUS_4_7),
    ("claude", &OPENAI),
    ("gemini", &OPENAI),
    ("gpt-oss", &HARMONY),
    ("deepseek", &DEEPSEEK),
    ("qwen3", &QWEN3),
    ("qwen-3", &QWEN3),
    ("qwen", &QWEN),
    ("qwq", &QWEN3),
    ("llama3", &LLAMA3),
    ("llama-3", &LLAMA3),
    ("llama-v3", &LLAMA3),
    ("mixtral", &MISTRAL_OLD),
    ("mistral-7b", &MISTRAL_OLD),
    ("mistral", &MISTRAL),
    ("ministral", &MISTRAL),
    ("codestral", &MISTRAL),
    ("devstral", &MISTRAL),
    ("magistral", &MISTRAL),
    ("pixtral", &MISTRAL),
    ("gemma", &GEMMA),
];

const OPENAIS: [&str; 6] = ["gpt", "o1", "o3", "o4", "chatgpt", "codex"];

impl Frame {
    /// Returns the frame of a model by its name; "" for any model.
    pub(super) fn of(model: &str) -> &'static Self {
        let name = model.rsplit('/').next().unwrap_or(model).to_lowercase();
        if model.ends_with("gpt-3.5-turbo-0301") {
            return &OLDEST;
        }
        if let Some((_, frame)) = FAMILIES.iter().find(|(part, _)| name.contains(part)) {
            return frame;
        }
        let name = name.strip_prefix("ft:").unwrap_or(&name);
        let is_openai = name.is_empty() || OPENAIS.iter().any(|start| name.starts_with(start));
        if is_openai { &OPENAI } else { &UNKNOWN }
    }

    /// Returns what an error calls the tokens that are not of a message.
    pub(super) fn around_name(&self) -> &'static str {
        if self.start > 0 { "the start and the reply" } else { "the reply" }
    }
}
