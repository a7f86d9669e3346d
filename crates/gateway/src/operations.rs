//! What clients asked of models, as OpenTelemetry's conventions for generative AI count it
//! (opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-metrics), under the names that these metrics have in Prometheus.

use crate::Api;
use crate::usage::Usage;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

/// The models that are counted by name. Clients choose the names, so all others are counted together.
const MOST_MODELS: usize = 64;

/// The longest name of a model, in bytes. A longer one is counted with the others.
const LONGEST_NAME: usize = 128;

/// The name under which other models are counted.
const OTHER: &str = "_OTHER";

/// The upper bounds of `gen_ai.client.operation.duration`, in seconds, as the conventions give them.
const SECONDS: [f64; 14] =
    [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];

/// The upper bounds of `gen_ai.client.token.usage`, in tokens, as the conventions give them.
const TOKENS: [f64; 14] = [
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1_024.0,
    4_096.0,
    16_384.0,
    65_536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];

/// The operations of each provider and model.
#[derive(Debug, Default)]
pub(crate) struct Operations {
    of: BTreeMap<(&'static str, String), Distributions>,
}

#[derive(Debug, Default)]
struct Distributions {
    seconds: Distribution,
    input: Distribution,
    output: Distribution,
}

/// How many values there were up to each bound, how many in all, and their sum.
#[derive(Debug, Default)]
struct Distribution {
    up_to: [u64; 14],
    count: u64,
    sum: f64,
}

impl Operations {
    /// Counts a request of a conversation that was answered: how long that took, from its arrival to the end of its
    /// answer, and what was billed for it, with all that was looked up within its turn; `None` if that is not known.
    pub(crate) fn done(&mut self, api: Api, model: &str, took: Duration, usage: Option<Usage>) {
        let provider = if api.is_anthropic() { "anthropic" } else { "openai" };
        let key = (provider, model.to_owned());
        let is_named = self.of.contains_key(&key)
            || (self.of.len() < MOST_MODELS && model.len() <= LONGEST_NAME);
        let key = if is_named { key } else { (provider, OTHER.to_owned()) };
        let of = self.of.entry(key).or_default();
        of.seconds.add(took.as_secs_f64(), &SECONDS);
        if let Some(usage) = usage {
            of.input.add(usage.input.total() as f64, &TOKENS);
            of.output.add(usage.output as f64, &TOKENS);
        }
    }

    /// Writes them in the text format of Prometheus.
    pub(crate) fn write(&self, text: &mut String) {
        head(
            text,
            "gen_ai_client_operation_duration_seconds",
            "Time from a client's request to the end of its answer.",
        );
        for (labels, of) in self.labelled() {
            of.seconds.write(text, "gen_ai_client_operation_duration_seconds", &labels, &SECONDS);
        }
        head(
            text,
            "gen_ai_client_token_usage",
            "Tokens of a request, recalls included, and of its answer.",
        );
        for (labels, of) in self.labelled() {
            for (kind, tokens) in [("input", &of.input), ("output", &of.output)] {
                let labels = format!("{labels},gen_ai_token_type=\"{kind}\"");
                tokens.write(text, "gen_ai_client_token_usage", &labels, &TOKENS);
            }
        }
    }

    fn labelled(&self) -> impl Iterator<Item = (String, &Distributions)> {
        self.of.iter().map(|((provider, model), of)| {
            let model = model.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let labels = format!(
                "gen_ai_operation_name=\"chat\",gen_ai_provider_name=\"{provider}\",gen_ai_request_model=\"{model}\""
            );
            (labels, of)
        })
    }
}

impl Distribution {
    fn add(&mut self, value: f64, bounds: &[f64; 14]) {
        let up_to = self.up_to.iter_mut().zip(bounds).filter(|(_, bound)| value <= **bound);
        up_to.for_each(|(count, _)| *count += 1);
        self.count += 1;
        self.sum += value;
    }

    fn write(&self, text: &mut String, name: &str, labels: &str, bounds: &[f64; 14]) {
        let Self { up_to, count, sum } = self;
        for (bound, count) in bounds.iter().zip(up_to) {
            let _ = writeln!(text, "{name}_bucket{{{labels},le=\"{bound}\"}} {count}");
        }
        let _ = writeln!(text, "{name}_bucket{{{labels},le=\"+Inf\"}} {count}");
        let _ = writeln!(text, "{name}_sum{{{labels}}} {sum}\n{name}_count{{{labels}}} {count}");
    }
}

fn head(text: &mut String, name: &str, help: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} histogram");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tokens;

    fn usage(plain: u64, output: u64) -> Option<Usage> {
        Some(Usage { input: Tokens { plain, ..Tokens::default() }, output })
    }

    fn text(operations: &Operations) -> String {
        let mut text = String::new();
        operations.write(&mut text);
        text
    }

    /// GW21: buckets count everything up to their bounds.
    #[test]
    fn gw21_buckets_are_cumulative() {
        let mut operations = Operations::default();
        operations.done(Api::Messages, "m", Duration::from_millis(640), usage(1_024, 3));
        operations.done(Api::Messages, "m", Duration::from_secs(100), None);
        let text = text(&operations);
        let labels = "gen_ai_operation_name=\"chat\",gen_ai_provider_name=\"anthropic\",gen_ai_request_model=\"m\"";
        let seconds = "gen_ai_client_operation_duration_seconds";
        for line in [
            format!("{seconds}_bucket{{{labels},le=\"0.32\"}} 0"),
            format!("{seconds}_bucket{{{labels},le=\"0.64\"}} 1"),
            format!("{seconds}_bucket{{{labels},le=\"81.92\"}} 1"),
            format!("{seconds}_bucket{{{labels},le=\"+Inf\"}} 2"),
            format!("{seconds}_sum{{{labels}}} 100.64"),
            format!("{seconds}_count{{{labels}}} 2"),
            format!(
                "gen_ai_client_token_usage_bucket{{{labels},gen_ai_token_type=\"input\",le=\"1024\"}} 1"
            ),
            format!("gen_ai_client_token_usage_sum{{{labels},gen_ai_token_type=\"output\"}} 3"),
            format!("gen_ai_client_token_usage_count{{{labels},gen_ai_token_type=\"output\"}} 1"),
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }

    /// GW21: a client's choice of names fills neither the memory nor the page, and breaks no line.
    #[test]
    fn gw21_names_of_models_are_bounded_and_escaped() {
        let mut operations = Operations::default();
        let second = Duration::from_secs(1);
        operations.done(Api::ChatCompletions, "模型\"\\\n", second, None);
        for n in 0..1_000 {
            operations.done(Api::ChatCompletions, &format!("m{n}"), second, None);
        }
        operations.done(Api::ChatCompletions, &"m".repeat(1 << 20), second, None);
        let text = text(&operations);
        assert!(text.contains("gen_ai_request_model=\"模型\\\"\\\\\\n\""), "{text}");
        assert!(text.len() < 1 << 20, "{} bytes", text.len());
        let others = "gen_ai_request_model=\"_OTHER\"} 938";
        assert!(text.contains(others), "{text}");
    }
}
