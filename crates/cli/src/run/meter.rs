//! What a run sends and spends, and what keeping everything would have sent.

use super::account::{Account, SummariesAccount};
use foldback_agent::{Purpose, TokenPrices};
use foldback_core::{Estimate, Message, TodoId, TokenCounter as _, ToolCallId, message_tokens};
use foldback_llm::{
    Capabilities, ChatChunk, ChatModel, ChatRequest, ChatResponse, ChatStream, ModelError, Usage,
};
use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Counts for a run: what its contexts record, and what its model is asked.
pub(crate) struct Meter {
    prices: Option<TokenPrices>,
    state: Mutex<State>,
    /// Notified of every answer.
    changed: Mutex<Box<Listener>>,
    /// Notified of every request.
    asked: Option<Box<Reader>>,
}

/// Sees every request before it is sent.
type Reader = dyn Fn(&ChatRequest) + Send + Sync;

/// Receives the figures after every answer.
type Listener = dyn Fn(&Account) + Send;

#[derive(Default)]
struct State {
    account: Account,
    /// The estimated recorded tokens, by todo.
    recorded: BTreeMap<TodoId, u64>,
    /// The names of the tools with which policies let the model look back.
    recall: BTreeSet<String>,
}

impl Meter {
    /// Starts from an account.
    pub(crate) fn new(
        account: Account,
        prices: Option<TokenPrices>,
        changed: impl Fn(&Account) + Send + 'static,
    ) -> Self {
        let state = State { account, ..State::default() };
        Self {
            prices,
            state: Mutex::new(state),
            changed: Mutex::new(Box::new(changed)),
            asked: None,
        }
    }

    /// Adds an observer of every request before it is sent.
    pub(crate) fn read_by(self, asked: impl Fn(&ChatRequest) + Send + Sync + 'static) -> Self {
        Self { asked: Some(Box::new(asked)), ..self }
    }

    fn asks(&self, request: &ChatRequest) {
        if let Some(asked) = &self.asked {
            asked(request);
        }
    }

    pub(crate) fn account(&self) -> Account {
        self.state.lock().account
    }

    /// Marks the run as over: what still arrives, such as a summary in progress, no longer changes its record.
    pub(crate) fn end(&self) {
        *self.changed.lock() = Box::new(|_| {});
    }

    /// Registers tools as those of a context policy.
    pub(crate) fn recalls_by(&self, tools: impl IntoIterator<Item = String>) {
        self.state.lock().recall.extend(tools);
    }

    /// Notes that a todo's context is opened with this many tokens.
    pub(crate) fn opened(&self, todo: &TodoId, tokens: u64) {
        self.state.lock().recorded.insert(todo.clone(), tokens);
    }

    /// Notes that something was recorded.
    pub(crate) fn recorded(&self, todo: &TodoId, tokens: u64) {
        *self.state.lock().recorded.entry(todo.clone()).or_default() += tokens;
    }

    pub(crate) fn is_recall(&self, tool: &str) -> bool {
        self.state.lock().recall.contains(tool)
    }

    /// Notes that a model wrote a summary, at these prices.
    fn summarized(&self, usage: Usage, prices: Option<TokenPrices>) {
        {
            let cost = prices.or(self.prices).map(|prices| prices.cost(&usage));
            let (input_tokens, output_tokens) = (usage.input, usage.output);
            let summaries = SummariesAccount { calls: 1, input_tokens, output_tokens, cost };
            let call = Account { calls: 1, usage, cost, summaries, ..Account::default() };
            let account = &mut self.state.lock().account;
            *account = account.plus(&call);
        }
        let changed = self.changed.lock();
        changed(&self.account());
    }

    /// Notes that a call ended without a usable answer.
    fn failed(&self, error: &ModelError, prices: Option<TokenPrices>) {
        {
            let usage = error.usage.unwrap_or_default();
            let cost = prices.or(self.prices).map(|prices| prices.cost(&usage));
            let call = Account { calls: 1, usage, cost, ..Account::default() };
            let account = &mut self.state.lock().account;
            *account = account.plus(&call);
        }
        let changed = self.changed.lock();
        changed(&self.account());
    }

    fn answered(
        &self,
        request: &ChatRequest,
        response: &ChatResponse,
        prices: Option<TokenPrices>,
    ) {
        {
            let mut state = self.state.lock();
            let looks_back = {
                let calls = response.message.tool_calls();
                !calls.is_empty() && calls.iter().all(|call| state.recall.contains(&call.name))
            };
            let sent = tokens(request, &BTreeSet::new());
            let full = if looks_back { 0 } else { full(&state, request).unwrap_or(sent) };
            let usage = response.usage;
            let cost = prices.or(self.prices).map(|prices| prices.cost(&usage));
            let call = Account { calls: 1, usage, cost, sent, full, ..Account::default() };
            state.account = state.account.plus(&call);
        }
        // One after the other, so that the figures reported last are the newest.
        let changed = self.changed.lock();
        changed(&self.account());
    }
}

/// The tokens that a request would have had if its context had kept everything; `None` for one that was not made from a
/// context.
fn full(state: &State, request: &ChatRequest) -> Option<u64> {
    // "<run>/<purpose>/<key>": a turn step by step is asked with the whole context.
    let purpose = request.id.as_deref()?.rsplit('/').nth(1)?;
    if purpose != Purpose::REACT.name() {
        return None;
    }
    let todo = TodoId::new(request.session.as_deref()?).ok()?;
    let recorded = state.recorded.get(&todo)?;
    let declared = ChatRequest::default().with_tools(request.tools.clone());
    Some(recorded + tokens(&declared, &state.recall))
}

/// The estimated tokens of a request, without these tools.
fn tokens(request: &ChatRequest, without: &BTreeSet<String>) -> u64 {
    let messages = request.messages.iter().map(|message| message_tokens(&Estimate, message));
    let tools = request.tools.iter().filter(|tool| !without.contains(&tool.name));
    let texts = tools.flat_map(|tool| [&tool.name, &tool.description, &tool.parameters]);
    messages.chain(texts.map(|text| Estimate.count(text))).sum::<usize>() as u64
}

/// Finds the messages of a conversation that would not exist if the model had everything before them: its look-ups, and
/// what they returned.
#[derive(Default)]
pub(crate) struct LookingBack(BTreeSet<ToolCallId>);

impl LookingBack {
    /// The tokens of the next message that would exist all the same.
    pub(crate) fn tokens(&mut self, message: &Message, meter: &Meter) -> u64 {
        let calls = message.tool_calls();
        let recalls = calls.iter().filter(|call| meter.is_recall(&call.name));
        let before = self.0.len();
        self.0.extend(recalls.map(|call| call.id.clone()));
        let only_looks_back = !calls.is_empty() && self.0.len() - before == calls.len();
        let is_found = message.tool_call_id().is_some_and(|id| self.0.contains(id));
        if only_looks_back || is_found { 0 } else { message_tokens(&Estimate, message) as u64 }
    }
}

/// A model whose calls are counted.
pub(crate) struct MeteredModel {
    pub(crate) model: Arc<dyn ChatModel>,
    pub(crate) meter: Arc<Meter>,
    /// The prices of its tokens, if they differ from those of the run's own model.
    pub(crate) money: Option<TokenPrices>,
}

impl MeteredModel {
    fn answered(&self, request: &ChatRequest, response: &ChatResponse) {
        self.meter.answered(request, response, self.money);
    }
}

impl ChatModel for MeteredModel {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn capabilities(&self) -> Capabilities {
        self.model.capabilities()
    }

    fn complete<'a>(
        &'a self,
        request: &'a ChatRequest,
    ) -> BoxFuture<'a, Result<ChatResponse, ModelError>> {
        async move {
            self.meter.asks(request);
            let answer = self.model.complete(request).await;
            match &answer {
                Ok(response) => self.answered(request, response),
                Err(error) => self.meter.failed(error, self.money),
            }
            answer
        }
        .boxed()
    }

    fn stream<'a>(
        &'a self,
        request: &'a ChatRequest,
    ) -> BoxFuture<'a, Result<ChatStream<'a>, ModelError>> {
        async move {
            self.meter.asks(request);
            let begun = self.model.stream(request).await;
            let pieces = begun.inspect_err(|error| self.meter.failed(error, self.money))?;
            let counted = pieces.inspect(move |piece| match piece {
                Ok(ChatChunk::Done(response)) => self.answered(request, response),
                Ok(_) => {}
                Err(error) => self.meter.failed(error, self.money),
            });
            Ok(counted.boxed())
        }
        .boxed()
    }
}

/// A model that writes summaries, whose answers are counted separately.
pub(crate) struct SummarizingModel {
    pub(crate) model: Arc<dyn ChatModel>,
    pub(crate) meter: Arc<Meter>,
    pub(crate) prices: Option<TokenPrices>,
}

impl ChatModel for SummarizingModel {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn complete<'a>(
        &'a self,
        request: &'a ChatRequest,
    ) -> BoxFuture<'a, Result<ChatResponse, ModelError>> {
        async move {
            let response = self.model.complete(request).await?;
            self.meter.summarized(response.usage, self.prices);
            Ok(response)
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foldback_core::{ToolCall, ToolDefinition};
    use foldback_llm::ScriptedModel;

    fn tool(name: &str) -> ToolDefinition {
        let (description, parameters) = ("Does it.".to_owned(), "{}".to_owned());
        ToolDefinition { name: name.to_owned(), description, parameters }
    }

    fn request(id: &str) -> ChatRequest {
        ChatRequest::new([Message::user("Which port?")])
            .with_tools(vec![tool("file_read"), tool("load")])
            .with_session("trip")
            .with_id(id)
    }

    /// A model behind a meter, whose context `trip` holds 10,000 tokens.
    fn metered(answer: foldback_llm::Answer) -> MeteredModel {
        let meter = Arc::new(Meter::new(Account::default(), None, |_| {}));
        meter.recalls_by(["load".to_owned()]);
        meter.opened(&TodoId::new("trip").unwrap(), 10_000);
        MeteredModel { model: Arc::new(ScriptedModel::new([answer])), meter, money: None }
    }

    fn account(answer: foldback_llm::Answer, id: &str) -> Account {
        let model = metered(answer);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(model.complete(&request(id))).unwrap();
        model.meter.account()
    }

    #[test]
    fn a_turn_is_compared_with_everything_that_was_recorded() {
        let own =
            tokens(&ChatRequest::default().with_tools(vec![tool("file_read")]), &BTreeSet::new());
        let spent = account("8443".into(), "trip/react/3");
        assert_eq!((spent.calls, spent.full), (1, 10_000 + own));
        assert_eq!(spent.sent, tokens(&request(""), &BTreeSet::new()));
    }

    #[test]
    fn what_is_asked_without_the_context_is_the_same_under_any_policy() {
        let spent = account("a plan".into(), "trip/planner/1");
        assert_eq!(spent.full, spent.sent);
    }

    #[test]
    fn nobody_hears_of_what_comes_after_the_end() {
        let (tell, told) = std::sync::mpsc::channel();
        let meter = Meter::new(Account::default(), None, move |account| {
            tell.send(account.calls).unwrap();
        });
        meter.summarized(Usage::default(), None);
        meter.end();
        meter.summarized(Usage::default(), None);
        assert_eq!(told.iter().collect::<Vec<_>>(), [1]);
        assert_eq!(meter.account().calls, 2);
    }

    #[test]
    fn looking_back_would_not_have_been_needed() {
        let spent = account(ToolCall::new("c1", "load", "{}").into(), "trip/react/3");
        assert_eq!((spent.calls, spent.full), (1, 0));
        let meter = metered("".into()).meter;
        let mut back = LookingBack::default();
        let call = |name: &str, id: &str| ToolCall::new(id, name, "{}");
        let mut counted = |message: Message| back.tokens(&message, &meter) > 0;
        assert!(!counted(Message::calls("", vec![call("load", "c1")])));
        assert!(!counted(Message::tool_result(&ToolCallId::new("c1"), "long ago")));
        assert!(counted(Message::calls("", vec![call("load", "c2"), call("file_read", "c3")])));
        assert!(!counted(Message::tool_result(&ToolCallId::new("c2"), "long ago")));
        assert!(counted(Message::tool_result(&ToolCallId::new("c3"), "now")));
    }
}
