//! The total cost of the conversations in a group.

use super::{Measured, Setting};
use crate::quantile;
use crate::savings::Group;
use serde::Serialize;

/// A conversation with a request of more tokens than this is long.
pub(crate) const LONG: u64 = 30_000;

/// The total cost of the conversations in a group.
#[derive(Clone, Debug, Serialize)]
pub struct Sum {
    /// The group.
    pub group: Group,
    /// Whether these are only those with a request of over 30,000 tokens.
    pub is_long: bool,
    /// The number of conversations.
    pub conversations: u64,
    /// The terms and the pauses.
    #[serde(flatten)]
    pub setting: Setting,
    /// Their cost sent directly, in plain tokens.
    pub direct: f64,
    /// Their cost through the gateway.
    pub gateway: f64,
    /// Their cost with the provider's own clearing.
    pub clearing: f64,
    /// Their cost through another proxy, if one is tried.
    pub proxy: Option<f64>,
    /// The share by which the gateway is cheaper, in total.
    pub saved: f64,
    /// The median of that over the conversations.
    pub median: f64,
    /// The lowest such share.
    pub least: f64,
    /// The share by which the clearing is cheaper, in total.
    pub saved_by_clearing: f64,
    /// The median of that over the conversations.
    pub median_by_clearing: f64,
    /// The share by which the other proxy is cheaper, in total.
    pub saved_by_proxy: Option<f64>,
    /// The median of that over the conversations.
    pub median_by_proxy: Option<f64>,
    /// The largest share by which the gateway was dearer after any request of any of them.
    pub dearer: f64,
    /// The conversation of that request; `None` if it was never dearer.
    pub dearest: Option<String>,
}

impl Sum {
    /// Returns the sums of all groups that have a conversation.
    pub(crate) fn all(conversations: &[Measured]) -> Vec<Self> {
        let mut sums = Vec::new();
        for group in Group::ALL {
            for is_long in [false, true] {
                let is_meant =
                    |one: &&Measured| one.group == group && (!is_long || one.tokens > LONG);
                let meant: Vec<_> = conversations.iter().filter(is_meant).collect();
                let mut settings: Vec<Setting> = Vec::new();
                for bill in meant.iter().flat_map(|one| &one.bills) {
                    if !settings.contains(&bill.setting) {
                        settings.push(bill.setting);
                    }
                }
                sums.extend(
                    settings.into_iter().map(|setting| Self::of(group, is_long, &meant, setting)),
                );
            }
        }
        sums
    }

    fn of(group: Group, is_long: bool, conversations: &[&Measured], setting: Setting) -> Self {
        let bills =
            conversations.iter().flat_map(|one| one.bills.iter().map(|bill| (&one.id, bill)));
        let bills: Vec<_> = bills.filter(|(_, bill)| bill.setting == setting).collect();
        let [mut saved, mut cleared, mut by_proxy] = [const { Vec::new() }; 3];
        let [mut direct, mut gateway, mut clearing, mut proxied] = [0.0; 4];
        let (mut dearer, mut dearest) = (0.0, None);
        for (id, bill) in &bills {
            saved.push(bill.saved);
            cleared.push(bill.saved_by_clearing);
            direct += bill.direct.cost;
            gateway += bill.gateway.cost;
            clearing += bill.clearing.cost;
            proxied += bill.proxy.map_or(0.0, |proxy| proxy.cost);
            by_proxy.extend(bill.saved_by_proxy);
            if bill.dearer > dearer {
                (dearer, dearest) = (bill.dearer, Some((*id).clone()));
            }
        }
        saved.sort_by(f64::total_cmp);
        cleared.sort_by(f64::total_cmp);
        by_proxy.sort_by(f64::total_cmp);
        let is_proxied = !by_proxy.is_empty();
        let share = |cost: f64| if direct > 0.0 { 1.0 - cost / direct } else { 0.0 };
        Self {
            group,
            is_long,
            conversations: bills.len() as u64,
            setting,
            direct,
            gateway,
            clearing,
            proxy: is_proxied.then_some(proxied),
            saved: share(gateway),
            median: quantile(&saved, 0.5),
            least: quantile(&saved, 0.0),
            saved_by_clearing: share(clearing),
            median_by_clearing: quantile(&cleared, 0.5),
            saved_by_proxy: is_proxied.then(|| share(proxied)),
            median_by_proxy: is_proxied.then(|| quantile(&by_proxy, 0.5)),
            dearer,
            dearest,
        }
    }
}
