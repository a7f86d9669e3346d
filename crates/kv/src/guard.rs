//! Guards against engines that panic when they meet damage.

use foldback_core::panic_text;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Calls an engine. A panic becomes an error with the panic's message, and is not printed: the caller says
/// what it means.
pub(crate) fn unpanicked<T>(ask: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let others = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !IS_GUARDED.get() {
                others(panic);
            }
        }));
    });
    let was_guarded = IS_GUARDED.replace(true);
    let answer = panic::catch_unwind(AssertUnwindSafe(ask));
    IS_GUARDED.set(was_guarded);
    answer.map_err(|panic| panic_text(&*panic).unwrap_or("without a word").to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_answer() {
        assert_eq!(unpanicked(|| 3), Ok(3));
        assert_eq!(unpanicked(|| panic!("page {}", 7)), Err::<(), _>("page 7".to_owned()));
        // A nested guard ends only itself.
        let nested = unpanicked(|| {
            assert!(unpanicked(|| panic!("inner")).is_err());
            IS_GUARDED.get()
        });
        assert_eq!((nested, IS_GUARDED.get()), (Ok(true), false));
    }
}
