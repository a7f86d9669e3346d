//! S1: no public function except the owner's handle reads recorded text without naming a todo.

use crate::story::workspace_root;
use std::collections::BTreeSet;
use std::path::Path;
use syn::{FnArg, ImplItem, Item, ItemImpl, ItemStruct, Visibility};

/// The crates through which a store can be read.
const CRATES: [&str; 4] = ["backend-store", "blockstore", "disclosure", "foldback"];

/// What is read from a store, or leads to it.
const READ: [&str; 25] = [
    "AllTodosAnswer",
    "Answer",
    "Arrangement",
    "Block",
    "Conversation",
    "Envelope",
    "Excerpt",
    "Followed",
    "Grant",
    "Hit",
    "Message",
    "MessageVectors",
    "Meta",
    "Pending",
    "PrefixMoves",
    "Prompt",
    "Searcher",
    "SearchAnswer",
    "Sent",
    "Session",
    "Sketch",
    "StoredMessage",
    "TodoInfo",
    "TodoList",
    "Write",
];

/// A public function: its place, the names in its arguments' types, and those in its return type.
struct Function {
    name: String,
    of: String,
    takes: BTreeSet<String>,
    gives: BTreeSet<String>,
}

/// A type: the names in its fields' types, and those that are themselves a field's type.
struct Struct {
    name: String,
    names: BTreeSet<String>,
    fields: BTreeSet<String>,
}

/// The declarations in the sources of the crates.
#[derive(Default)]
struct Sources {
    structs: Vec<Struct>,
    functions: Vec<Function>,
}

/// S1: of all public functions that read, only the owner's neither take a todo nor belong to one.
#[test]
fn s1_nothing_public_reads_without_a_todo() {
    let mut sources = Sources::default();
    for name in CRATES {
        sources.read(&workspace_root().join("crates").join(name).join("src"));
    }
    // Types that hold a store, and types of one todo, also indirectly.
    let stores = sources.holding(&["Kv"], |of| &of.names);
    let bound = sources.holding(&["Todo", "TodoId"], |of| &of.fields);
    assert!(stores.contains("Memory") && stores.contains("Owner") && stores.contains("Session"));
    assert!(bound.contains("Session") && bound.contains("Searcher"), "{bound:?}");
    assert!(!bound.contains("Memory") && !bound.contains("BlockStore"), "{bound:?}");
    let is_of_todo = |names: &BTreeSet<String>| names.iter().any(|name| bound.contains(name));
    let reading = sources.functions.iter().filter(|function| {
        let holds = stores.contains(&function.of) || !function.takes.is_disjoint(&stores);
        holds && function.gives.iter().any(|name| READ.contains(&name.as_str()))
    });
    let (mut count, mut without) = (0, Vec::new());
    for function in reading {
        count += 1;
        if !bound.contains(&function.of) && !is_of_todo(&function.takes) {
            without.push(format!("{}::{}", function.of, function.name));
        }
    }
    without.sort();
    // `AllTodos` is reached through `Owner` alone: `s2_rc7_no_agent_reaches_the_search_over_all_todos`.
    assert_eq!(without, ["AllTodos::search", "Owner::recall", "Owner::search"]);
    println!("{count} public functions read, of {} in all", sources.functions.len());
    assert!(count > 40, "only {count} functions were seen to read");
}

impl Sources {
    fn read(&mut self, folder: &Path) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                self.read(&path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                let file = syn::parse_file(&text).unwrap_or_else(|error| panic!("{error}"));
                file.items.into_iter().for_each(|item| self.take(item));
            }
        }
    }

    fn take(&mut self, item: Item) {
        match item {
            Item::Struct(ItemStruct { ident, fields, .. }) => {
                let names = fields.iter().flat_map(|field| names_in(&field.ty)).collect();
                let fields = fields.iter().filter_map(|field| alone(&field.ty)).collect();
                self.structs.push(Struct { name: ident.to_string(), names, fields });
            }
            Item::Fn(function) if is_public(&function.vis) => self.function("", &function.sig),
            Item::Impl(ItemImpl { trait_: None, self_ty, items, .. }) => {
                let of = names_in(&self_ty).into_iter().next().unwrap_or_default();
                for item in items {
                    if let ImplItem::Fn(function) = item
                        && is_public(&function.vis)
                    {
                        self.function(&of, &function.sig);
                    }
                }
            }
            _ => {}
        }
    }

    fn function(&mut self, of: &str, signature: &syn::Signature) {
        let arguments = signature.inputs.iter().filter_map(|argument| match argument {
            FnArg::Typed(argument) => Some(names_in(&argument.ty)),
            FnArg::Receiver(_) => None,
        });
        let mut takes: BTreeSet<String> = arguments.flatten().collect();
        let gives = match &signature.output {
            syn::ReturnType::Default => BTreeSet::new(),
            syn::ReturnType::Type(_, gives) => names_in(gives),
        };
        // A written-to argument counts as returned, too.
        let mut gives = gives;
        if takes.remove("Write") {
            gives.insert("Write".to_owned());
        }
        let (name, of) = (signature.ident.to_string(), of.to_owned());
        self.functions.push(Function { name, of, takes, gives });
    }

    /// The types that hold one of these, directly or indirectly, and these themselves.
    fn holding(&self, of: &[&str], held_by: fn(&Struct) -> &BTreeSet<String>) -> BTreeSet<String> {
        let mut held: BTreeSet<String> = of.iter().map(|name| (*name).to_owned()).collect();
        loop {
            let holding = self.structs.iter().filter(|one| !held_by(one).is_disjoint(&held));
            let more: Vec<String> = holding.map(|one| one.name.clone()).collect();
            let before = held.len();
            held.extend(more);
            if held.len() == before {
                return held;
            }
        }
    }
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

/// The name of a single type, perhaps shared or borrowed: not a list, not an enum.
fn alone(of: &syn::Type) -> Option<String> {
    match of {
        syn::Type::Reference(of) => alone(&of.elem),
        syn::Type::Path(of) => {
            let last = of.path.segments.last()?;
            match &last.arguments {
                syn::PathArguments::AngleBracketed(arguments) if last.ident == "Arc" => {
                    match arguments.args.first()? {
                        syn::GenericArgument::Type(of) => alone(of),
                        _ => None,
                    }
                }
                syn::PathArguments::AngleBracketed(arguments) => {
                    let is_lifetime = |of| matches!(of, &syn::GenericArgument::Lifetime(_));
                    arguments.args.iter().all(is_lifetime).then(|| last.ident.to_string())
                }
                _ => Some(last.ident.to_string()),
            }
        }
        _ => None,
    }
}

/// The names in a type, including its parameters.
fn names_in(of: &syn::Type) -> BTreeSet<String> {
    use syn::{GenericArgument, PathArguments, ReturnType, Type, TypeParamBound};
    fn of_path(path: &syn::Path, names: &mut BTreeSet<String>) {
        for segment in &path.segments {
            names.insert(segment.ident.to_string());
            match &segment.arguments {
                PathArguments::AngleBracketed(arguments) => {
                    for argument in &arguments.args {
                        match argument {
                            GenericArgument::Type(of) => names.extend(names_in(of)),
                            GenericArgument::AssocType(of) => names.extend(names_in(&of.ty)),
                            _ => {}
                        }
                    }
                }
                PathArguments::Parenthesized(arguments) => {
                    arguments.inputs.iter().for_each(|of| names.extend(names_in(of)));
                    if let ReturnType::Type(_, of) = &arguments.output {
                        names.extend(names_in(of));
                    }
                }
                PathArguments::None => {}
            }
        }
    }
    let mut names = BTreeSet::new();
    let bounds = |bounds: &syn::punctuated::Punctuated<TypeParamBound, syn::Token![+]>,
                  names: &mut BTreeSet<String>| {
        for bound in bounds {
            if let TypeParamBound::Trait(bound) = bound {
                of_path(&bound.path, names);
            }
        }
    };
    match of {
        Type::Path(of) => of_path(&of.path, &mut names),
        Type::Reference(of) => names = names_in(&of.elem),
        Type::Slice(of) => names = names_in(&of.elem),
        Type::Array(of) => names = names_in(&of.elem),
        Type::Paren(of) => names = names_in(&of.elem),
        Type::Tuple(of) => of.elems.iter().for_each(|of| names.extend(names_in(of))),
        Type::TraitObject(of) => bounds(&of.bounds, &mut names),
        Type::ImplTrait(of) => bounds(&of.bounds, &mut names),
        _ => {}
    }
    names
}
