"""The encoding of each model: the table of tiktoken 0.14, as data."""

MODELS_OF = {
    "o200k_base": ("gpt-5", "gpt-4.1", "gpt-4o", "o1", "o3", "o4-mini"),
    "cl100k_base": (
        *("gpt-4", "gpt-3.5-turbo", "gpt-3.5", "gpt-35-turbo"),
        *("davinci-002", "babbage-002", "text-embedding-ada-002"),
        *("text-embedding-3-small", "text-embedding-3-large"),
    ),
    "p50k_base": (
        *("text-davinci-003", "text-davinci-002", "code-davinci-002", "code-davinci-001"),
        *("code-cushman-002", "code-cushman-001", "davinci-codex", "cushman-codex"),
    ),
    "p50k_edit": ("text-davinci-edit-001", "code-davinci-edit-001"),
    "r50k_base": (
        *("text-davinci-001", "text-curie-001", "text-babbage-001", "text-ada-001"),
        *("davinci", "curie", "babbage", "ada"),
        *("text-similarity-davinci-001", "text-similarity-curie-001"),
        *("text-similarity-babbage-001", "text-similarity-ada-001"),
        *("text-search-davinci-doc-001", "text-search-curie-doc-001"),
        *("text-search-babbage-doc-001", "text-search-ada-doc-001"),
        *("code-search-babbage-code-001", "code-search-ada-code-001"),
    ),
    "gpt2": ("gpt2", "gpt-2"),
}
"""Each encoding with its models, by their whole names."""

ENCODING_OF_PREFIX = {
    "o1-": "o200k_base",
    "o3-": "o200k_base",
    "o4-mini-": "o200k_base",
    "gpt-5": "o200k_base",
    "gpt-4.5-": "o200k_base",
    "gpt-4.1-": "o200k_base",
    "chatgpt-4o-": "o200k_base",
    "gpt-4o-": "o200k_base",
    "gpt-4-": "cl100k_base",
    "gpt-3.5-turbo-": "cl100k_base",
    "gpt-35-turbo-": "cl100k_base",
    "gpt-oss-": "o200k_harmony",
    "ft:gpt-4o": "o200k_base",  # before the next one, which it starts with
    "ft:gpt-4": "cl100k_base",
    "ft:gpt-3.5-turbo": "cl100k_base",
    "ft:davinci-002": "cl100k_base",
    "ft:babbage-002": "cl100k_base",
}
"""The prefixes of dated, sized and fine-tuned models; the first match decides."""

ENCODING_OF_MODEL = {model: name for name, models in MODELS_OF.items() for model in models}

MODELS = tuple(ENCODING_OF_MODEL)
"""The models known by their whole names."""

NATIVE = {
    "cl100k_base": "cl100k_base",
    "o200k_base": "o200k_base",
    "o200k_harmony": "o200k_base",  # differs in special tokens only, which count as text
    **{name: name for name in ("qwen2", "qwen3.5", "deepseek", "glm4", "tekken", "gemma4")},
    **{name: name for name in ("claude3", "claude4.7", "claude4.8")},
}
"""The native counter of an encoding, if it has one."""


def encoding_of(model: str) -> str | None:
    """
    Return the name of the encoding that *model* uses, or None if it is unknown.

    A whole name comes before a prefix. A result does not mean that the model exists: every name
    that starts with ``gpt-5`` has an encoding.

    Examples:
        >>> encoding_of("gpt-4o"), encoding_of("gpt-4-0613"), encoding_of("gpt2")
        ('o200k_base', 'cl100k_base', 'gpt2')
        >>> encoding_of("GPT-4o") is None
        True

    """
    if model in ENCODING_OF_MODEL:
        return ENCODING_OF_MODEL[model]
    for prefix, encoding in ENCODING_OF_PREFIX.items():
        if model.startswith(prefix):
            return encoding
    return None
