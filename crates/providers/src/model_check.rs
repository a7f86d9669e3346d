//! What a server takes and gives: a handful of questions, and the settings that follow from the answers.

use crate::config::{CallIds, ChatTemplate, SystemRole, Turns};
use crate::{ModelConfig, Provider, RemoteModel, ServerFacts};
use foldback_core::{Content, Message, Role, ToolCall, ToolDefinition};
use foldback_llm::{
    ChatModel, ChatRequest, ChatResponse, ModelError, ModelErrorKind, Sampling, ToolChoice,
};
use serde::Serialize;

/// The longest answer to a question, in tokens: whether there is one is what is asked.
const ANSWER: u32 = 48;

/// A declared tool takes so many tokens at least; a server that counts none for one has not shown it to the
/// model. (llama-cpp-python counts a few only.)
const LEAST_TOOL: u64 = 1;

/// What a server was found to take and to give.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ModelCheck {
    /// The questions, in the order in which they were asked.
    pub findings: Vec<CheckFinding>,
    /// The settings of the table `[model]` that fit this server, a line each; those that are in force
    /// already among them.
    pub settings: Vec<String>,
    /// Whether an agent can work with it, with these settings.
    pub is_usable: bool,
}

/// What came of a question.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CheckFinding {
    /// What was asked.
    pub question: &'static str,
    /// Whether it is so; `None` where that could not be found out.
    pub holds: Option<bool>,
    /// What was seen.
    pub detail: String,
}

impl ModelCheck {
    /// Asks the server of a model. It takes some ten short requests; the first that nobody answers ends it.
    ///
    /// # Errors
    /// When no request can be made of the settings.
    pub async fn ask(config: &ModelConfig) -> Result<Self, ModelError> {
        let facts = ServerFacts::ask(config).await?;
        let mut asking = Asking::new(config.clone().completed_by(&facts))?;
        let is_there = asking.answers().await;
        if is_there {
            asking.streams().await?;
            asking.system().await?;
            asking.tools().await?;
            asking.history().await?;
            asking.null_content().await?;
        }
        asking.window(&facts);
        let settings = asking.settings();
        let Asking { findings, is_usable, .. } = asking;
        Ok(Self { findings, settings, is_usable: is_there && is_usable })
    }
}

/// What is asked, and what was found so far.
struct Asking {
    /// Whole answers, asked for once.
    config: ModelConfig,
    /// What is found to fit.
    stream: bool,
    required_calls: bool,
    hermes: bool,
    findings: Vec<CheckFinding>,
    /// The tokens of the plainest request, as the server counts them.
    plainest: u64,
    is_usable: bool,
}

impl Asking {
    fn new(config: ModelConfig) -> Result<Self, ModelError> {
        // Settings that no request can be made of are refused here.
        drop(RemoteModel::new(config.clone())?);
        Ok(Self {
            stream: config.stream,
            required_calls: config.required_calls,
            hermes: config.tool_calls == crate::ToolCalls::Hermes,
            config,
            findings: Vec::new(),
            plainest: 0,
            is_usable: true,
        })
    }

    fn found(&mut self, question: &'static str, holds: impl Into<Option<bool>>, detail: &str) {
        let detail = detail.to_owned();
        self.findings.push(CheckFinding { question, holds: holds.into(), detail });
    }

    async fn ask(&self, config: ModelConfig, request: ChatRequest) -> Answer {
        let request = request.with_sampling(Sampling::default().with_max_tokens(ANSWER));
        RemoteModel::new(config)?.complete(&request).await
    }

    /// A whole answer, under this template.
    async fn whole(&self, template: ChatTemplate, request: ChatRequest) -> Answer {
        let config = self.config.clone().with_template(template).with_stream(false);
        self.ask(config, request).await
    }

    async fn answers(&mut self) -> bool {
        let answer = self.whole(self.config.template, ChatRequest::new([question()])).await;
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                self.found("answers", false, &error.message);
                return false;
            }
        };
        self.found("answers", true, &format!("as {}", answer.model));
        self.plainest = answer.usage.input;
        let counts = self.plainest > 0;
        let detail = match counts {
            true => format!("{} in, {} out", answer.usage.input, answer.usage.output),
            false => "no usage is told: bounds of tokens and money do not hold".to_owned(),
        };
        self.found("counts tokens", counts, &detail);
        true
    }

    async fn streams(&mut self) -> Result<(), ModelError> {
        let config = self.config.clone().with_stream(true);
        let model = RemoteModel::new(config)?;
        let request = ChatRequest::new([question()])
            .with_sampling(Sampling::default().with_max_tokens(ANSWER));
        let (pieces, usage) = match model.pieces(&request).await {
            Ok(counted) => counted,
            Err(error) => {
                self.stream = false;
                self.found("streams", false, &error.message);
                return Ok(());
            }
        };
        if pieces == 0 {
            self.found("streams", false, "the answer came whole, which is taken as well");
        } else if usage.input == 0 && self.plainest > 0 {
            self.stream = false;
            let detail = format!("in {pieces} pieces, but without the tokens that it took");
            self.found("streams", false, &detail);
        } else {
            self.found("streams", true, &format!("in {pieces} pieces"));
        }
        Ok(())
    }

    /// Instructions, at the beginning and late.
    async fn system(&mut self) -> Result<(), ModelError> {
        let first = vec![Message::system("Be brief."), question()];
        let late = vec![
            Message::system("Be brief."),
            question(),
            Message::assistant("Yes."),
            question(),
            Message::system("In English."),
        ];
        let never = |template| ChatTemplate { system: SystemRole::Never, ..template };
        let only_first = |template| ChatTemplate { system: SystemRole::First, ..template };
        self.takes("takes instructions", first, false, &[&never]).await?;
        self.takes("takes late instructions", late, false, &[&only_first, &never]).await
    }

    /// Tools: whether they arrive, whether a call can be required, whether one is made.
    async fn tools(&mut self) -> Result<(), ModelError> {
        let with_tool = || ChatRequest::new([tool_question()]).with_tools(vec![tool()]);
        let without = self.whole(self.config.template, ChatRequest::new([tool_question()])).await;
        let auto = self.whole(self.config.template, with_tool()).await;
        let mut called = false;
        match auto {
            Err(error) => {
                self.hermes = true;
                self.found("takes tools", false, &error.message);
                return Ok(());
            }
            Ok(answer) => {
                called |= calls(&answer);
                let counted = without.map_or(0, |answer| answer.usage.input);
                let more = answer.usage.input.saturating_sub(counted);
                if counted > 0 && more < LEAST_TOOL && !called {
                    self.hermes = true;
                    let detail = "they are passed over: a tool takes no tokens";
                    self.found("takes tools", false, detail);
                    return Ok(());
                }
                self.found("takes tools", true, &format!("{more} tokens for one"));
            }
        }
        let required = with_tool().with_tool_choice(ToolChoice::Required);
        let config = self.config.clone().with_required_calls(true).with_stream(false);
        match self.ask(config, required).await {
            Ok(answer) => {
                called |= calls(&answer);
                self.found("takes that a call is required", true, "");
            }
            Err(error) => {
                self.required_calls = false;
                self.found("takes that a call is required", false, &error.message);
            }
        }
        let detail = if called { "" } else { "it was asked twice; small models often do not" };
        self.found("calls tools", called, detail);
        Ok(())
    }

    /// What a conversation with calls looks like.
    async fn history(&mut self) -> Result<(), ModelError> {
        if self.hermes {
            return Ok(());
        }
        let call = |id: &str| ToolCall::new(id, "tide", r#"{"port": "Holm"}"#);
        let result = |id: &str| Message::tool_result(&call(id).id, "6.4 m");
        let asked = |ids: &[&str]| {
            let calls = ids.iter().map(|id| call(id)).collect();
            let mut messages = vec![tool_question(), Message::calls("", calls)];
            messages.extend(ids.iter().map(|id| result(id)));
            messages
        };
        let nine = |template| ChatTemplate { call_ids: CallIds::Nine, ..template };
        let single = |template| ChatTemplate { parallel_calls: false, ..template };
        let alternating = |template| ChatTemplate { turns: Turns::Alternating, ..template };
        let both = |template| alternating(nine(template));
        let one = asked(&["call_1"]);
        self.takes("takes a call and its result", one, true, &[&nine, &alternating, &both]).await?;
        let parallel = asked(&["call_1", "call_2"]);
        self.takes("takes calls beside each other", parallel, true, &[&single]).await?;
        let mut behind = asked(&["call_1"]);
        behind.push(Message::user(
            "[state of the work, not said by the user]\nTodo list:\n- [ ] answer",
        ));
        self.takes("takes the user behind a result", behind, true, &[&alternating]).await
    }

    /// Whether a conversation is taken; where it is not, the first template of those that follow is kept
    /// under which it is.
    async fn takes(
        &mut self,
        what: &'static str,
        messages: Vec<Message>,
        tools: bool,
        otherwise: &[&(dyn Fn(ChatTemplate) -> ChatTemplate + Sync)],
    ) -> Result<(), ModelError> {
        let request = || {
            let request = ChatRequest::new(messages.clone());
            if tools { request.with_tools(vec![tool()]) } else { request }
        };
        let in_force = self.config.template;
        let error = match self.whole(in_force, request()).await {
            Ok(_) => {
                let is_plain = in_force == ChatTemplate::default();
                let detail = if is_plain { "" } else { "with the settings below" };
                self.found(what, true, detail);
                return Ok(());
            }
            Err(error) => error,
        };
        if error.kind == ModelErrorKind::Authentication {
            return Err(error);
        }
        for other in otherwise {
            let template = other(in_force);
            if template != in_force && self.whole(template, request()).await.is_ok() {
                self.config.template = template;
                self.found(
                    what,
                    false,
                    &format!("it is said otherwise, by a setting: {}", error.message),
                );
                return Ok(());
            }
        }
        self.is_usable = false;
        self.found(what, false, &error.message);
        Ok(())
    }

    /// Whether a message with calls may have no content: foldback sends an empty text to servers of
    /// one's own, so it need not.
    async fn null_content(&mut self) -> Result<(), ModelError> {
        if self.hermes || self.config.provider != Provider::OpenAiCompatible {
            return Ok(());
        }
        let call = ToolCall::new("call_1", "tide", r#"{"port": "Holm"}"#);
        let result = Message::tool_result(&call.id, "6.4 m");
        let asking = Message::compose(Role::Assistant, Content::Empty, vec![call], None);
        let request = ChatRequest::new(vec![tool_question(), asking, result])
            .with_tools(vec![tool()])
            .with_sampling(Sampling::default().with_max_tokens(ANSWER));
        let model = RemoteModel::new(self.config.clone().with_stream(false))?;
        match model.whole_with_null_content(&request).await {
            Ok(_) => self.found("takes null content", true, ""),
            Err(_) => self.found("takes null content", false, "an empty text is sent instead"),
        }
        Ok(())
    }

    fn window(&mut self, facts: &ServerFacts) {
        match (facts.context_tokens, self.config.context_tokens) {
            (Some(tokens), _) => {
                self.found("tells its window", true, &format!("{tokens} tokens"));
            }
            (None, Some(tokens)) => {
                self.found("tells its window", false, &format!("the settings say {tokens} tokens"));
            }
            (None, None) => {
                let detail = "write context_tokens = N down, so that requests stay within it";
                self.found("tells its window", None, detail);
            }
        }
    }

    fn settings(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(tokens) = self.config.context_tokens {
            lines.push(format!("context_tokens = {tokens}"));
        }
        if !self.stream {
            lines.push("stream = false".to_owned());
        }
        if self.hermes {
            lines.push("tool_calls = \"hermes\"".to_owned());
            return lines;
        }
        if !self.required_calls {
            lines.push("required_calls = false".to_owned());
        }
        lines.extend(self.config.template.settings());
        lines
    }
}

type Answer = Result<ChatResponse, ModelError>;

fn calls(answer: &ChatResponse) -> bool {
    !answer.message.tool_calls().is_empty()
}

fn question() -> Message {
    Message::user("Answer with one word: is water wet?")
}

fn tool_question() -> Message {
    Message::user("How high is the tide at Holm? Call the tool `tide`.")
}

fn tool() -> ToolDefinition {
    ToolDefinition {
        name: "tide".to_owned(),
        description: "The height of the tide at a port, in metres.".to_owned(),
        parameters: r#"{"type":"object","properties":{"port":{"type":"string","description":"The port's name."}},"required":["port"]}"#.to_owned(),
    }
}
