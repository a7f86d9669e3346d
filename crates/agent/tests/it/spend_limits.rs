//! Limits on spending, at the limit itself.

use crate::toolkit::ms;
use foldback_agent::{Resource, SpendError, SpendLimits, SpendTracker, TokenPrices};
use foldback_llm::Usage;
use tokio::time::Instant;

const PRICES: TokenPrices =
    TokenPrices { input: 3.0, output: 15.0, cached_read: 0.3, cached_write: 3.75 };

fn usage(input: u64, output: u64) -> Usage {
    Usage { input, output, ..Usage::default() }
}

/// S10: a resource at its limit is used up: money, input and output tokens, time.
#[tokio::test(start_paused = true)]
async fn s10_what_has_reached_its_bound_is_gone() {
    let cost = SpendTracker::new(SpendLimits::default(), Some(PRICES))
        .unwrap()
        .model_called(usage(90, 10))
        .unwrap();
    for (limits, less, resource) in [
        (SpendLimits::default().with_cost(cost), usage(90, 9), Resource::Cost),
        (SpendLimits::default().with_tokens(100), usage(90, 9), Resource::Tokens),
        (SpendLimits::default().with_tokens(100), usage(0, 99), Resource::Tokens),
    ] {
        let spend = SpendTracker::new(limits, Some(PRICES)).unwrap();
        let _ = spend.model_called(less);
        assert_eq!(spend.exhausted(), None, "{limits:?}");
        let spend = SpendTracker::new(limits, Some(PRICES)).unwrap();
        let _ = spend.model_called(Usage { output: less.output + 1, ..less });
        assert_eq!(spend.exhausted(), Some(resource), "{limits:?}");
    }
    let spend = SpendTracker::new(SpendLimits::default().with_time(ms(10)), None).unwrap();
    tokio::time::advance(ms(9)).await;
    assert_eq!(spend.exhausted(), None);
    tokio::time::advance(ms(1)).await;
    assert_eq!(spend.exhausted(), Some(Resource::Time));
}

/// S10: a share has no more time than the tracker that it came from.
#[tokio::test(start_paused = true)]
async fn s10_a_share_ends_with_its_tracker() {
    let of = |seconds: u64| SpendLimits::default().with_time(ms(seconds * 1_000));
    for (outer, inner) in [(10, 20), (20, 10)] {
        let began = Instant::now();
        let share = SpendTracker::new(of(outer), None).unwrap().share(of(inner)).unwrap();
        assert_eq!(share.deadline(), Some(began + ms(10_000)), "{outer} and {inner}");
        assert_eq!(share.counting().deadline(), share.deadline());
    }
}

/// S10: prices that are negative, or not a number, are refused.
#[test]
fn s10_each_price_is_checked() {
    for wrong in [-0.1, f64::NAN, f64::INFINITY] {
        for prices in [
            TokenPrices { input: wrong, ..PRICES },
            TokenPrices { output: wrong, ..PRICES },
            TokenPrices { cached_read: wrong, ..PRICES },
            TokenPrices { cached_write: wrong, ..PRICES },
        ] {
            let spend = SpendTracker::new(SpendLimits::default(), Some(prices));
            assert!(matches!(spend, Err(SpendError::Price(_))), "{prices:?}");
        }
    }
}
