//! libFuzzer on the target of this name.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| foldback_fuzz::plans::native_calls(bytes));
