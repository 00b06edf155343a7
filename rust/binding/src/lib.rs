//! Python binding of `budgeteer`: conversions only, no logic.

mod arrow;
mod chunk;
mod codes;
mod column;
mod convert;
mod corpus;
mod count;
mod error;
mod layout;
mod outcome;
mod output;
mod pack;
mod score;
mod sentences;
mod similarity;
mod slots;
mod table;
mod tokenizer;
mod truncate;

/// Native backend of `budgeteer`. Private: import from `budgeteer`.
#[pyo3::pymodule(gil_used = false)]
mod _native {
    #[pymodule_export]
    use super::chunk::{read_scores, scored};
    #[pymodule_export]
    use super::column::{TextColumn, read_column};
    #[pymodule_export]
    use super::corpus::{
        corpus_statistics, index_chunks, open_corpus, remove_chunks, replace_chunks, save_corpus,
        stored_chunk,
    };
    #[pymodule_export]
    use super::count::{
        cache_info, clear_cache, count, count_around, count_batch, count_chunks, count_column,
        count_till_limit,
    };
    #[pymodule_export]
    use super::layout::resolve_layout;
    #[pymodule_export]
    use super::outcome::{dropped_chunks, kept_chunks};
    #[pymodule_export]
    use super::output::fit_output;
    #[pymodule_export]
    use super::pack::{Packed, Plan};
    #[pymodule_export]
    use super::score::{Statistics, bm25_scores, keyword_scores, keywords, lexical_scores};
    #[pymodule_export]
    use super::sentences::sentence_spans;
    #[pymodule_export]
    use super::similarity::cosine_scores;
    #[pymodule_export]
    use super::table::{Columns, Rows, pack_rows, read_rows};
    #[pymodule_export]
    use super::tokenizer::{Tokenizer, packed_vocabulary};
    #[pymodule_export]
    use super::truncate::{grapheme_boundaries, truncate};
}
