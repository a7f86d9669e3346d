//! L: appended to, summed up above its limit, with the fields of a schema.

use super::drive::{Back, Loop, texts};
use foldback_baselines::Counters;
use foldback_baselines::stm_ltm::{
    Compression, Compressor, Extractive, Note, NoteKind, Scene, StmLtmConfig, Written,
};
use foldback_core::{ContextError, Estimate, Message, SideCall, SideCalls, TokenCounter};
use std::sync::Arc;

/// A loop in the middle of its work: the text of L after each step, if there is one.
fn memories(agent: &mut Loop, steps: usize) -> Vec<String> {
    agent.record(Message::user("Repair the gates."));
    let mut memories = Vec::new();
    for n in 0..steps {
        let result = format!("gate {n} at {n}°14' is stuck. 闸门 {n} 卡住了。").repeat(4);
        agent.step("I look.", &[("look", &format!("{{\"gate\": {n}}}"), &result)]);
        let shown = texts(&agent.prompt());
        memories.extend(shown.into_iter().find(|text| text.starts_with("Memory of the steps")));
    }
    memories
}

/// CX11: the limit is 4,000 tokens unless another is set.
#[test]
fn cx11_the_limit_is_4000_tokens() {
    assert_eq!(StmLtmConfig::default().memory_tokens, 4_000);
}

/// CX4: below its limit L is appended to and nothing is rewritten; above it a summary of half the
/// length takes its place, so that this happens once in several steps.
#[test]
fn cx4_the_memory_is_appended_to_until_it_is_over_its_limit() {
    let config =
        StmLtmConfig { memory_tokens: 1_000, summary_tokens: 500, ..StmLtmConfig::default() };
    for back in Back::IN_TIME {
        let mut agent = Loop::new(config.clone(), back);
        let memories = memories(&mut agent, 60);
        // L begins with the second step; nothing that arrived while a summary was being written is
        // missing.
        for (n, memory) in memories.iter().enumerate() {
            assert!(
                memory.contains(&format!("look {{\"gate\": {n}}}")),
                "{back:?}: {n} in {memory}"
            );
        }
        let mut rewritten = 0;
        for pair in memories.windows(2) {
            let tokens = Estimate.count(&pair[0]);
            if !pair[1].starts_with(&pair[0]) {
                rewritten += 1;
                // The step that exceeded the limit, of some 130 tokens, may be in no prompt yet.
                assert!(tokens + 150 > config.memory_tokens, "{back:?}: {tokens}");
                assert!(Estimate.count(&pair[1]) < config.memory_tokens, "{back:?}: {}", pair[1]);
            }
            assert!(tokens < 1_400, "{back:?}: {tokens}");
        }
        let calls = agent.context.take();
        assert!((4..=12).contains(&rewritten), "{back:?}: {rewritten}");
        assert_eq!(calls.len(), rewritten, "{back:?}: each is told as a call");
        for SideCall { purpose, input_tokens, output_tokens, .. } in calls {
            assert_eq!(purpose, "summary");
            assert!(input_tokens > 1_000 && (100..=500).contains(&output_tokens));
        }
        assert!(agent.context.take().is_empty(), "they are told once");
    }
}

#[test]
fn what_was_asked_outlives_what_was_found() {
    let config =
        StmLtmConfig { memory_tokens: 600, summary_tokens: 300, ..StmLtmConfig::default() };
    let mut agent = Loop::new(config, Back::AtOnce);
    agent.record(Message::user("Repair the gates."));
    agent.step("", &[("look", "{}", "all stick")]);
    agent.record(Message::user("千万不要碰 9 号闸门。"));
    let last = memories(&mut agent, 40).pop().unwrap();
    assert!(last.contains("user: 千万不要碰 9 号闸门。"), "{last}");
    assert!(!last.contains("all stick"), "{last}");
}

/// CX10: a scene's schema names fields that every summary keeps, with the latest value that was found,
/// wherever it was; for a field that was never found it says so.
#[test]
fn cx10_every_summary_keeps_the_fields_of_the_schema() {
    let schema = ["错误码", "Owner", "deadline"].map(str::to_owned).to_vec();
    let scene = Scene { schema, ..Scene::default() };
    let config =
        StmLtmConfig { scene, memory_tokens: 600, summary_tokens: 200, ..StmLtmConfig::default() };
    let mut agent = Loop::new(config, Back::OneRecordLater);
    agent.record(Message::user("Repair the gates."));
    let noise = "the gate sticks. ".repeat(200);
    let found = format!("{noise}\n错误码：E-4711\nowner: Ann\n{noise}");
    agent.step("", &[("look", "{}", &found)]);
    agent.step("", &[("ask", "{}", &format!("{noise}\n\"owner\": \"Bea\",\n{noise}"))]);
    let last = memories(&mut agent, 40).pop().unwrap();
    for line in ["\n- 错误码: E-4711", "\n- Owner: Bea", "\n- deadline: (not found)"] {
        assert_eq!(last.matches(line).count(), 1, "{line} in {last}");
    }
    assert!(!last.contains("Ann"), "{last}");
}

/// A model behind the port: its text is in L, and its cost is reported.
struct Model {
    words: usize,
    fails: bool,
}

impl Compressor for Model {
    fn name(&self) -> &str {
        "written by a model"
    }

    fn compress(
        &self,
        task: &Compression<'_>,
        counters: &Counters,
    ) -> Result<Written, ContextError> {
        if self.fails {
            return Err(ContextError { message: "the model is gone".to_owned(), source: None });
        }
        let text = format!("All gates stick. {}", "数 word ".repeat(self.words));
        let output_tokens = counters.bills.count(&text);
        let input_tokens = counters.bills.count(&task.text());
        Ok(Written {
            notes: vec![Note { kind: NoteKind::Summary, of: None, text }],
            call: Some(SideCall { purpose: "summary", input_tokens, output_tokens, cost: None }),
        })
    }
}

#[test]
fn a_model_can_stand_behind_the_port() {
    // What it writes beyond its limit is cut, and if it fails the rule takes over.
    for (words, fails) in [(2, false), (2_000, false), (0, true)] {
        let config = StmLtmConfig {
            memory_tokens: 600,
            summary_tokens: 300,
            compressor: Arc::new(Model { words, fails }),
            ..StmLtmConfig::default()
        };
        let mut agent = Loop::new(config, Back::OneRecordLater);
        let last = memories(&mut agent, 30).pop().unwrap();
        let by = match fails {
            false => "written by a model, newer steps extracted by rule",
            true => "extracted by rule, not written by a model",
        };
        assert!(
            last.starts_with(&format!("Memory of the steps before the last one ({by}).")),
            "{last}"
        );
        assert_eq!(last.contains("- All gates stick. 数 word"), !fails, "{last}");
        assert!(Estimate.count(&last) < 900, "{last}");
        assert!(!agent.context.take().is_empty());
    }
}

/// A model that is gone after its first summary: what it wrote is not lost to the rule.
#[test]
fn a_summary_outlives_the_model_that_wrote_it() {
    let schema = vec!["owner".to_owned()];
    let task =
        |notes, max_tokens| Compression { notes, max_tokens, schema: &schema, with_ids: true };
    let note = |kind, text: &str| Note { kind, of: None, text: text.to_owned() };
    let notes = [
        note(NoteKind::Summary, &"All gates stick. 闸门都卡住了。".repeat(40)),
        note(NoteKind::Field, "owner: Ann"),
        note(NoteKind::Result, "-> it sticks"),
    ];
    let written = Extractive.compress(&task(&notes, 100), &Arc::new(Estimate).into()).unwrap();
    let kinds: Vec<NoteKind> = written.notes.iter().map(|note| note.kind).collect();
    assert_eq!(kinds, [NoteKind::Summary, NoteKind::Result], "fields are the policy's");
    assert!(written.notes[0].text.starts_with("All gates stick."));
    assert!(written.call.unwrap().output_tokens <= 100);
}
