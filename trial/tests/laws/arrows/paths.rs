//! The paths that an item names, in code and in the arguments of macros.

use proc_macro2::{Span, TokenStream, TokenTree};
use syn::visit::{self, Visit};

/// A path that is named on a line.
pub struct Named {
    pub path: Vec<String>,
    pub line: usize,
}

/// All paths that an item names; visibilities (`pub(in …)`) and attributes name nothing.
pub fn named(item: &syn::Item) -> Vec<Named> {
    let mut found = Found(Vec::new());
    found.visit_item(item);
    found.0
}

struct Found(Vec<Named>);

impl Found {
    fn add(&mut self, path: Vec<String>, span: Span) {
        self.0.push(Named { path, line: span.start().line });
    }

    /// Paths in tokens that are not parsed: `a::b::c`.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let (mut colons, mut line) = (0, Span::call_site());
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    if colons != 2 && !path.is_empty() {
                        self.add(std::mem::take(&mut path), line);
                    }
                    line = name.span();
                    path.push(name.to_string());
                    colons = 0;
                }
                TokenTree::Punct(mark) if mark.as_char() == ':' => colons += 1,
                other => {
                    if !path.is_empty() {
                        self.add(std::mem::take(&mut path), line);
                    }
                    colons = 0;
                    if let TokenTree::Group(group) = other {
                        self.tokens(group.stream());
                    }
                }
            }
        }
        if !path.is_empty() {
            self.add(path, line);
        }
    }
}

impl<'ast> Visit<'ast> for Found {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        if let Some(first) = path.segments.first() {
            let names = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
            self.add(names, first.ident.span());
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.visit_path(&call.path);
        self.tokens(call.tokens.clone());
    }

    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}
}
