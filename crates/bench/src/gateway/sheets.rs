//! The bills as tables.

use super::sum::LONG;
use super::{Bills, Sum};
use crate::Sheet;
use crate::savings::percent;
use crate::sheet::counted;
use foldback_core::thousands;

impl Bills {
    /// Returns the tables that a person reads: the savings of each group, and where the gateway was
    /// dearest.
    #[must_use]
    pub fn sheets(&self) -> Vec<Sheet> {
        let mut sheets: Vec<Sheet> = Vec::new();
        let numbers = ["direct", "saved", "median", "least", "dearest", "clearing", "median"];
        let mut before = None;
        for sum in &self.sums {
            if before.replace((sum.group, sum.is_long)) != Some((sum.group, sum.is_long)) {
                sheets.push(Sheet::new(&title(sum), &["prices", "pause"], &numbers));
            }
            let names =
                [sum.setting.prices(), sum.setting.rhythm(), format!("{:.2} M", sum.direct / 1e6)];
            let shares = [
                sum.saved,
                sum.median,
                sum.least,
                sum.dearer,
                sum.saved_by_clearing,
                sum.median_by_clearing,
            ];
            if let Some(sheet) = sheets.last_mut() {
                sheet.row(names.into_iter().chain(shares.map(percent)));
            }
        }
        sheets.push(self.dearest());
        sheets.extend(self.proxied());
        sheets
    }

    /// Returns what another proxy saves, if one is tried.
    fn proxied(&self) -> Option<Sheet> {
        let title = "Through the other proxy (saved: in sum, median)";
        let mut sheet = Sheet::new(title, &["group", "prices", "pause"], &["saved", "median"]);
        for sum in &self.sums {
            let shares = [sum.saved_by_proxy?, sum.median_by_proxy?].map(percent);
            let names = [sum.title(), sum.setting.prices(), sum.setting.rhythm()];
            sheet.row(names.into_iter().chain(shares));
        }
        Some(sheet)
    }

    /// Returns the conversation that was dearest through the gateway, on each of the terms and with
    /// each of the pauses.
    fn dearest(&self) -> Sheet {
        let title = "Dearest through the gateway, after any request";
        let mut sheet =
            Sheet::new(title, &["prices", "pause", "conversation"], &["dearer", "request"]);
        let settings = self.sums.iter().filter(|sum| !sum.is_long).map(|sum| sum.setting);
        let mut told = Vec::new();
        for setting in settings {
            if told.contains(&setting) {
                continue;
            }
            told.push(setting);
            let bills = self
                .conversations
                .iter()
                .flat_map(|one| one.bills.iter().map(move |bill| (one, bill)));
            let bills = bills.filter(|(_, bill)| bill.setting == setting && bill.dearest_at > 0);
            if let Some((one, bill)) = bills.max_by(|(_, a), (_, b)| a.dearer.total_cmp(&b.dearer))
            {
                let request = format!("{} of {}", bill.dearest_at, one.requests);
                sheet.row([
                    setting.prices(),
                    setting.rhythm(),
                    one.id.clone(),
                    percent(bill.dearer),
                    request,
                ]);
            }
        }
        sheet
    }

    /// Returns a row for each conversation, terms and pause.
    #[must_use]
    pub fn rows(&self) -> Sheet {
        let numbers = [
            "requests",
            "tokens",
            "read",
            "write",
            "life",
            "pause",
            "direct",
            "gateway",
            "clearing",
            "proxy",
            "saved",
            "saved_by_clearing",
            "saved_by_proxy",
            "dearer",
            "dearest_at",
        ];
        let mut sheet = Sheet::new("gateway", &["id", "file", "group"], &numbers);
        for one in &self.conversations {
            for bill in &one.bills {
                let setting = bill.setting;
                let names = [one.id.clone(), one.file.clone(), one.group.as_str().to_owned()];
                let pause = setting.pause.map_or_else(String::new, |pause| pause.to_string());
                let numbers = [
                    one.requests.to_string(),
                    one.tokens.to_string(),
                    setting.read.to_string(),
                    setting.write.to_string(),
                    setting.life.to_string(),
                    pause,
                ];
                let text = |number: Option<f64>| number.map_or_else(String::new, |n| n.to_string());
                let costs =
                    [Some(bill.direct), Some(bill.gateway), Some(bill.clearing), bill.proxy]
                        .map(|billed| text(billed.map(|billed| billed.cost)));
                let shares = [
                    Some(bill.saved),
                    Some(bill.saved_by_clearing),
                    bill.saved_by_proxy,
                    Some(bill.dearer),
                ];
                let rest = costs.into_iter().chain(shares.map(text));
                let rest = rest.chain([bill.dearest_at.to_string()]);
                sheet.row(names.into_iter().chain(numbers).chain(rest));
            }
        }
        sheet
    }
}

impl Sum {
    /// Returns the name of its conversations.
    pub(crate) fn title(&self) -> String {
        match self.is_long {
            true => format!("{} over {} tokens", self.group.title(), thousands(LONG)),
            false => self.group.title().to_owned(),
        }
    }
}

/// Returns the heading of a group's figures.
fn title(sum: &Sum) -> String {
    let count = counted(sum.conversations, "conversation");
    format!(
        "{}: {count} (direct: cost in millions of plain tokens; saved: by the gateway in sum, median, least; dearest: most above \
         direct after any request; clearing: saved by the provider's own)",
        sum.title()
    )
}
