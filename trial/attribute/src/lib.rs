//! The attribute `#[test]` of `sixway-trial`: the function stays as it is, and the harness learns of it.

use proc_macro::{TokenStream, TokenTree};

/// Marks a test: a function without arguments and without a result.
#[proc_macro_attribute]
pub fn test(_: TokenStream, function: TokenStream) -> TokenStream {
    let is_fn = |token: &TokenTree| matches!(token, TokenTree::Ident(word) if word.to_string() == "fn");
    let name = function.clone().into_iter().skip_while(|token| !is_fn(token)).nth(1);
    let Some(TokenTree::Ident(name)) = name else {
        return "compile_error!(\"a test is a function\");".parse().unwrap_or_default();
    };
    let told = format!(
        "::sixway_trial::inventory::submit! {{ \
         ::sixway_trial::Test {{ name: concat!(module_path!(), \"::\", stringify!({name})), run: {name} }} }}"
    );
    function.into_iter().chain(told.parse::<TokenStream>().unwrap_or_default()).collect()
}
