mod text;pub use text::Text;
