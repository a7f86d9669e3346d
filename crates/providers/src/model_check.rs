//! What a server accepts and returns: a few questions, and the settings that follow from the answers.

mod judged;

use crate::config::{CallIds, ChatTemplate, SystemRole, Turns};
use crate::{ModelConfig, Provider, RemoteModel, ServerFacts, ToolCalls};
use foldback_core::{Message, ToolCall, ToolDefinition};
use foldback_llm::{ChatRequest, ChatResponse, ModelError, ToolChoice};
use judged::Judged;
use serde::Serialize;

/// A declared tool takes at least this many tokens; a server that counts none for one has not shown it to
/// the model. (llama-cpp-python counts only a few.)
const LEAST_TOOL: u64 = 1;

/// What a server was found to accept and return.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ModelCheck {
    /// The questions, in the order in which they were asked.
    pub findings: Vec<CheckFinding>,
    /// The settings of the table `[model]` that fit this server, a line each, including those that
    /// are already in force.
    pub settings: Vec<String>,
    /// Whether an agent can work with it, with these settings.
    pub is_usable: bool,
}

/// The result of a question.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CheckFinding {
    /// What was asked.
    pub question: &'static str,
    /// Whether it holds; `None` if that could not be determined.
    pub holds: Option<bool>,
    /// What was observed.
    pub detail: String,
}

impl ModelCheck {
    /// Asks the server of a model. It takes some ten short requests; the first that gets no answer, not
    /// even a refusal, ends it.
    ///
    /// # Errors
    /// When no request can be made with the settings.
    pub async fn ask(config: &ModelConfig) -> Result<Self, ModelError> {
        let facts = ServerFacts::ask(config).await?;
        let mut config = config.clone().completed_by(&facts);
        let narrow = config.check_window().err().filter(|_| config.is_window_told);
        if narrow.is_some() {
            // The server is at fault, but can still be asked.
            config = config.with_context_tokens(None);
        }
        let mut asking = Asking::new(config)?;
        let is_answered = asking.questions().await.is_some();
        asking.window(&facts, narrow);
        let settings = asking.settings();
        let Asking { findings, is_usable, .. } = asking;
        Ok(Self { findings, settings, is_usable: is_answered && is_usable })
    }
}

/// The settings to test, and the findings so far.
struct Asking {
    /// The settings that were found to fit. Answers are requested without retries, and whole.
    config: ModelConfig,
    /// Whether answers are to be streamed.
    stream: bool,
    findings: Vec<CheckFinding>,
    /// The tokens of the simplest request, as the server counts them.
    plainest: u64,
    is_usable: bool,
}

/// `None` is a question without an answer: it ends the check.
type Asked = Option<()>;

impl Asking {
    fn new(config: ModelConfig) -> Result<Self, ModelError> {
        // Settings with which no request can be made are refused here.
        drop(RemoteModel::new(config.clone())?);
        Ok(Self {
            stream: config.stream,
            config: config.with_stream(false),
            findings: Vec::new(),
            plainest: 0,
            is_usable: true,
        })
    }

    async fn questions(&mut self) -> Asked {
        self.answers().await?;
        self.streams().await?;
        // Only self-hosted servers have chat templates that settings describe.
        let is_own = self.config.provider == Provider::OpenAiCompatible;
        if is_own {
            self.system().await?;
        }
        self.tools().await?;
        if is_own {
            self.history().await?;
        }
        Some(())
    }

    fn found(&mut self, question: &'static str, holds: impl Into<Option<bool>>, detail: &str) {
        let detail = detail.to_owned();
        self.findings.push(CheckFinding { question, holds: holds.into(), detail });
    }

    fn unanswered<T>(&mut self, question: &'static str, error: &ModelError) -> Option<T> {
        self.found(question, None, &error.message);
        None
    }

    async fn judge(&self, config: &ModelConfig, request: &ChatRequest) -> Judged {
        Judged::of(config, request, &ChatRequest::new([question()])).await
    }

    async fn answers(&mut self) -> Asked {
        let answer = match judged::ask(&self.config, &ChatRequest::new([question()])).await {
            Ok((_, answer)) => answer,
            Err(error) => {
                self.found("answers", false, &error.message);
                return None;
            }
        };
        self.found("answers", true, &format!("as {}", answer.model));
        self.plainest = answer.usage.input;
        let counts = self.plainest > 0;
        let detail = match counts {
            true => format!("{} in, {} out", answer.usage.input, answer.usage.output),
            false => {
                "the server reports no usage: limits on tokens and money do not work".to_owned()
            }
        };
        self.found("counts tokens", counts, &detail);
        Some(())
    }

    async fn streams(&mut self) -> Asked {
        const QUESTION: &str = "streams";
        let config = self.config.clone().with_stream(true);
        let (pieces, usage) = match self.judge(&config, &ChatRequest::new([question()])).await {
            Judged::Taken(pieces, answer) => (pieces, answer.usage),
            Judged::Refused(error) => {
                self.stream = false;
                self.found(QUESTION, false, &error.message);
                return Some(());
            }
            Judged::Unanswered(error) => return self.unanswered(QUESTION, &error),
        };
        if pieces == 0 {
            self.found(QUESTION, false, "the answer came whole, which works as well");
        } else if usage.input == 0 && self.plainest > 0 {
            self.stream = false;
            let detail = format!("in {pieces} pieces, but without the tokens that it took");
            self.found(QUESTION, false, &detail);
        } else {
            self.found(QUESTION, true, &format!("in {pieces} pieces"));
        }
        Some(())
    }

    /// Tests instructions, at the beginning and late.
    async fn system(&mut self) -> Asked {
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
        self.takes("accepts instructions", ChatRequest::new(first), &[&never]).await?;
        self.takes("accepts late instructions", ChatRequest::new(late), &[&only_first, &never])
            .await
    }

    /// Tests tools: whether they arrive, whether a call can be required, whether one is made.
    async fn tools(&mut self) -> Asked {
        const QUESTION: &str = "accepts tools";
        let with_tool = ChatRequest::new([tool_question()]).with_tools(vec![tool()]);
        let mut called = false;
        if self.config.tool_calls() == ToolCalls::Native {
            let without = ChatRequest::new([tool_question()]);
            let counted = match self.judge(&self.config, &without).await {
                Judged::Taken(_, answer) => answer.usage.input,
                Judged::Refused(error) | Judged::Unanswered(error) => {
                    return self.unanswered(QUESTION, &error);
                }
            };
            match self.judge(&self.config, &with_tool).await {
                Judged::Taken(_, answer) => {
                    called = calls(&answer);
                    let more = answer.usage.input.saturating_sub(counted);
                    if counted > 0 && more < LEAST_TOOL && !called {
                        self.as_text("they are ignored: a tool adds no tokens");
                    } else {
                        self.found(QUESTION, true, &format!("{more} tokens for one"));
                    }
                }
                Judged::Refused(error) => self.as_text(&error.message),
                Judged::Unanswered(error) => return self.unanswered(QUESTION, &error),
            }
        }
        if !self.is_usable {
            return Some(());
        }
        called |= match self.config.tool_calls() {
            ToolCalls::Hermes => self.tools_as_text(&with_tool).await?,
            ToolCalls::Native => self.required(with_tool).await?,
        };
        let detail =
            if called { "" } else { "small models often do not, although they are asked to" };
        self.found("calls tools", called, detail);
        Some(())
    }

    /// Handles tools that do not arrive: they are sent as text, if that helps.
    fn as_text(&mut self, why: &str) {
        if self.config.provider == Provider::OpenAiCompatible {
            self.config.tool_calls = Some(ToolCalls::Hermes);
        } else {
            self.is_usable = false;
        }
        self.found("accepts tools", false, why);
    }

    /// Tests whether a tool that is sent as text is called.
    async fn tools_as_text(&mut self, with_tool: &ChatRequest) -> Option<bool> {
        const QUESTION: &str = "accepts tools as text";
        match self.judge(&self.config, with_tool).await {
            Judged::Taken(_, answer) => {
                self.found(QUESTION, true, "");
                Some(calls(&answer))
            }
            Judged::Refused(error) => {
                self.is_usable = false;
                self.found(QUESTION, false, &error.message);
                Some(false)
            }
            Judged::Unanswered(error) => self.unanswered(QUESTION, &error),
        }
    }

    /// Tests whether a tool is called if that is required.
    async fn required(&mut self, with_tool: ChatRequest) -> Option<bool> {
        const QUESTION: &str = "accepts a required call";
        let required = with_tool.with_tool_choice(ToolChoice::Required);
        let config = self.config.clone().with_required_calls(true);
        match self.judge(&config, &required).await {
            Judged::Taken(_, answer) => {
                self.found(QUESTION, true, "");
                Some(calls(&answer))
            }
            Judged::Refused(error) => {
                self.config.required_calls = false;
                self.found(QUESTION, false, &error.message);
                Some(false)
            }
            Judged::Unanswered(error) => self.unanswered(QUESTION, &error),
        }
    }

    /// Tests conversations with calls.
    async fn history(&mut self) -> Asked {
        let call = |id: &str| ToolCall::new(id, "tide", r#"{"port": "Holm"}"#);
        let result = |id: &str| Message::tool_result(&call(id).id, "6.4 m");
        let asked = |ids: &[&str], more: Option<Message>| {
            let calls = ids.iter().map(|id| call(id)).collect();
            let mut messages = vec![tool_question(), Message::calls("", calls)];
            messages.extend(ids.iter().map(|id| result(id)).chain(more));
            ChatRequest::new(messages).with_tools(vec![tool()])
        };
        let nine = |template| ChatTemplate { call_ids: CallIds::Nine, ..template };
        let single = |template| ChatTemplate { parallel_calls: false, ..template };
        let alternating = |template| ChatTemplate { turns: Turns::Alternating, ..template };
        let both = |template| alternating(nine(template));
        let one = asked(&["call_1"], None);
        self.takes("accepts a call and its result", one, &[&nine, &alternating, &both]).await?;
        let parallel = asked(&["call_1", "call_2"], None);
        self.takes("accepts parallel calls", parallel, &[&single]).await?;
        let state = "[state of the work, not said by the user]\nTodo list:\n- [ ] answer";
        let behind = asked(&["call_1"], Some(Message::user(state)));
        self.takes("accepts user text after a result", behind, &[&alternating]).await
    }

    /// Tests whether a conversation is accepted; if not, the first of the following templates with which
    /// it is accepted is kept.
    async fn takes(
        &mut self,
        what: &'static str,
        request: ChatRequest,
        otherwise: &[&(dyn Fn(ChatTemplate) -> ChatTemplate + Sync)],
    ) -> Asked {
        let in_force = self.config.chat_template();
        let error = match self.judge(&self.config, &request).await {
            Judged::Taken(..) => {
                let is_plain = in_force == ChatTemplate::default();
                let detail = if is_plain { "" } else { "with the settings below" };
                self.found(what, true, detail);
                return Some(());
            }
            Judged::Refused(error) => error,
            Judged::Unanswered(error) => return self.unanswered(what, &error),
        };
        let others = otherwise.iter().map(|other| other(in_force));
        for template in others.filter(|template| *template != in_force) {
            let config = self.config.clone().with_template(template);
            match self.judge(&config, &request).await {
                Judged::Taken(..) => {
                    self.config = config;
                    let detail = format!("it is rewritten, by a setting: {}", error.message);
                    self.found(what, false, &detail);
                    return Some(());
                }
                Judged::Refused(_) => {}
                Judged::Unanswered(error) => return self.unanswered(what, &error),
            }
        }
        self.is_usable = false;
        self.found(what, false, &error.message);
        Some(())
    }

    fn window(&mut self, facts: &ServerFacts, narrow: Option<ModelError>) {
        match (facts.context_tokens, self.config.context_tokens) {
            (Some(tokens), _) => {
                self.found("reports its window", true, &format!("{tokens} tokens"));
            }
            (None, Some(tokens)) => {
                self.found(
                    "reports its window",
                    false,
                    &format!("the settings say {tokens} tokens"),
                );
            }
            (None, None) => {
                let detail = "set context_tokens = N, so that requests stay within it";
                self.found("reports its window", None, detail);
            }
        }
        if let Some(error) = narrow {
            self.is_usable = false;
            self.found("has room for an agent", false, &error.message);
        }
    }

    fn settings(&self) -> Vec<String> {
        let config = &self.config;
        let mut lines = Vec::new();
        if let Some(tokens) = config.context_tokens {
            lines.push(format!("context_tokens = {tokens}"));
        }
        if !self.stream {
            lines.push("stream = false".to_owned());
        }
        if config.tool_calls() == ToolCalls::Hermes {
            lines.push("tool_calls = \"hermes\"".to_owned());
        } else if !config.required_calls {
            lines.push("required_calls = false".to_owned());
        }
        lines.extend(config.chat_template().settings());
        lines
    }
}

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
