//! The fields of chunks, of any type that holds texts or numbers.

use crate::arrow::{Array, Ints, Numbers, Schema, Slots, Strings, type_name};
use crate::codes::{TEXT_KEYS, Unfit};

use super::{Child, Names, Refused, broken, mistyped, refused};

/// The fields of chunks. Places are those of the column of chunks.
pub(super) struct Fields {
    /// Which chunks are null, if they are structs.
    pub(super) items: Option<Slots>,
    /// How far behind that the fields of a chunk are.
    pub(super) shift: usize,
    pub(super) text: Strings,
    /// The name of the field; empty if chunks are texts.
    pub(super) text_name: &'static str,
    pub(super) title: Option<Strings>,
    pub(super) source: Option<Strings>,
    pub(super) kind: Option<Strings>,
    pub(super) id: Option<Id>,
    pub(super) score: Option<Numbers>,
    pub(super) position: Option<Numbers>,
    pub(super) mtime: Option<Numbers>,
}

/// A column of identifiers.
pub(super) enum Id {
    Texts(Strings),
    Ints(Ints),
}

pub(super) fn place_of(schema: &Schema, name: &str) -> Option<usize> {
    schema.children().position(|field| field.name() == name)
}

pub(super) fn strings(schema: &Schema, array: &Array, name: &str) -> Result<Strings, Refused> {
    Strings::of(schema, array).ok_or_else(|| mistyped("string", name, schema))
}

impl Fields {
    /// Reads the items of lists.
    pub(super) fn of(item: Child<'_>, name: &str) -> Result<Self, Refused> {
        if item.0.format() == "+s" && item.0.dictionary().is_none() {
            return Self::of_structs(item, name);
        }
        let name = format!("{name}[]");
        Ok(Self::of_texts(strings(item.0, item.1, &name)?, ""))
    }

    fn of_texts(text: Strings, text_name: &'static str) -> Self {
        Self {
            items: None,
            shift: 0,
            text,
            text_name,
            title: None,
            source: None,
            kind: None,
            id: None,
            score: None,
            position: None,
            mtime: None,
        }
    }

    pub(super) fn of_structs((schema, array): Child<'_>, name: &str) -> Result<Self, Refused> {
        let Some((text_name, place)) =
            TEXT_KEYS.into_iter().find_map(|key| Some((key, place_of(schema, key)?)))
        else {
            let all: Vec<_> = schema.children().map(Schema::name).collect();
            return Err(refused(Unfit::NoColumn, format!("{name}[].text"), all.join("\0")));
        };
        let field = schema.children().nth(place).ok_or_else(broken)?;
        let child = array.child(place).ok_or_else(broken)?;
        let full = format!("{name}[].{text_name}");
        let fields = Self::of_texts(strings(field, child, &full)?, text_name);
        let fields = fields.with((schema, array), &format!("{name}[]."), |_| false)?;
        Ok(Self { items: Some(Slots::of(array)), shift: array.offset(), ..fields })
    }

    /// Reads the texts of a long table, and the columns beside them that have
    /// the names of fields.
    pub(super) fn of_table(
        table: Child<'_>,
        (field, child): Child<'_>,
        names: Names<'_>,
    ) -> Result<Self, Refused> {
        let fields = Self::of_texts(strings(field, child, names.chunks.unwrap_or_default())?, "");
        fields.with(table, "", |name| {
            [names.chunks, names.query, names.group_by].contains(&Some(name))
        })
    }

    /// Returns whether chunks have no field beside their texts.
    pub(super) fn are_texts_alone(&self) -> bool {
        let labels = [&self.title, &self.source, &self.kind];
        let numbers = [&self.score, &self.position, &self.mtime];
        self.text_name.is_empty()
            && self.id.is_none()
            && labels.iter().all(|label| label.is_none())
            && numbers.iter().all(|number| number.is_none())
    }

    /// Adds the other fields, but those that are taken for something else.
    fn with(
        mut self,
        (schema, array): Child<'_>,
        prefix: &str,
        is_taken: impl Fn(&str) -> bool,
    ) -> Result<Self, Refused> {
        for (place, field) in schema.children().enumerate() {
            let name = field.name();
            if is_taken(name) {
                continue;
            }
            let Some(child) = array.child(place) else { continue };
            if child.len() < array.offset() + array.len() {
                return Err(broken());
            }
            let wrong = || refused(Unfit::ColumnType, format!("{prefix}{name}"), type_name(field));
            let texts = || strings(field, child, &format!("{prefix}{name}"));
            let numbers = || Numbers::of(field, child).ok_or_else(wrong);
            match name {
                "title" => self.title = Some(texts()?),
                "source" => self.source = Some(texts()?),
                "kind" => self.kind = Some(texts()?),
                "id" => {
                    self.id = Some(match Ints::of(field, child) {
                        Some(ids) => Id::Ints(ids),
                        None => Id::Texts(texts()?),
                    });
                }
                "score" => self.score = Some(numbers()?),
                "position" => self.position = Some(numbers()?),
                "mtime" => self.mtime = Some(numbers()?),
                _ => {}
            }
        }
        Ok(self)
    }
}
