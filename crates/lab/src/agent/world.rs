//! A generated project that an agent works on: services with settings, logs and notes, and a reading
//! that can be taken only once.

use foldback_core::ToolDefinition;
use foldback_tool::{Effect, FunctionTool, Tool, ToolError, ToolOutput, ToolSpec};
use parking_lot::Mutex;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::{fs, io};

/// The services of a project, each with its facts.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) services: Vec<Service>,
}

/// A service: its facts in the project's files, and the reading of its gauge.
#[derive(Clone, Debug)]
pub(crate) struct Service {
    pub(crate) name: String,
    pub(crate) facts: BTreeMap<Field, String>,
    /// The number of lines in its log.
    log_lines: u64,
    seed: u64,
}

/// The facts of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Field {
    /// A port, in a file of settings.
    Port,
    /// The code of an incident, in one line of a large log.
    Incident,
    /// A limit, in a note in Chinese.
    Limit,
    /// A reading that is given only once.
    Reading,
}

impl Field {
    pub(crate) const ALL: [Self; 4] = [Self::Port, Self::Incident, Self::Limit, Self::Reading];

    /// Returns the field's name in reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Port => "port",
            Self::Incident => "incident",
            Self::Limit => "limit",
            Self::Reading => "reading",
        }
    }
}

/// Pseudo-random numbers from a seed: SplitMix64 of Steele, Lea and Flood.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }
}

/// Names of services; from the second round on they are numbered.
const NAMES: [&str; 12] = [
    "harbour", "lantern", "orchard", "quarry", "saddle", "thimble", "beacon", "cellar", "meadow",
    "pebble", "ribbon", "willow",
];

/// The messages of log lines.
const LINES: [&str; 6] = [
    "accepted a connection",
    "served a request in time",
    "renewed its lease",
    "wrote a checkpoint",
    "retried a send and succeeded",
    "closed an idle connection",
];

impl World {
    /// Generates a project with this many services; logs have 20 to 160 KB.
    pub(crate) fn new(services: u32, seed: u64) -> Self {
        let mut numbers = Numbers(seed);
        let service = |at: u32| {
            let (round, place) = (at as usize / NAMES.len(), at as usize % NAMES.len());
            let stem = NAMES.get(place).copied().unwrap_or_default();
            let name = if round == 0 { stem.to_owned() } else { format!("{stem}{}", round + 1) };
            let code = numbers.next();
            let facts = [
                (Field::Port, format!("{}", 20_000 + numbers.below(40_000))),
                (Field::Incident, format!("INC-{:04x}-{:04x}", code & 0xffff, code >> 48)),
                (Field::Limit, format!("{}.{:02} 秒", 10 + numbers.below(80), numbers.below(100))),
                (Field::Reading, format!("{:09}", numbers.below(1_000_000_000))),
            ];
            let log_lines = 300 + numbers.below(2_000);
            Service { name, facts: facts.into(), log_lines, seed: numbers.next() }
        };
        Self { services: (0..services).map(service).collect() }
    }

    /// Writes the project's files.
    pub(crate) fn write(&self, folder: &Path) -> io::Result<()> {
        for part in ["services", "logs", "docs", "reports"] {
            fs::create_dir_all(folder.join(part))?;
        }
        for service in &self.services {
            let name = &service.name;
            fs::write(folder.join(format!("services/{name}.toml")), service.settings())?;
            fs::write(folder.join(format!("logs/{name}.log")), service.log())?;
            fs::write(folder.join(format!("docs/{name}.md")), service.note())?;
        }
        Ok(())
    }

    /// The gauge: each service's reading is given only once.
    pub(crate) fn gauge(&self) -> Arc<dyn Tool> {
        let readings = self
            .services
            .iter()
            .map(|service| (service.name.clone(), service.fact(Field::Reading).to_owned()));
        let readings = Arc::new(Mutex::new(readings.collect::<BTreeMap<_, _>>()));
        let definition = ToolDefinition {
            name: "gauge_read".to_owned(),
            description: "Takes the reading of a service's gauge, which resets it.".to_owned(),
            parameters: r#"{"type":"object","properties":{"service":{"type":"string"}},"required":["service"],"additionalProperties":false}"#.to_owned(),
        };
        let spec = ToolSpec::new(definition).with_effect(Effect::Effectful);
        Arc::new(FunctionTool::new(spec, move |arguments, _| {
            let asked: Option<Value> = serde_json::from_str(&arguments).ok();
            let service = asked.and_then(|asked| Some(asked.get("service")?.as_str()?.to_owned()));
            let reading = service.as_ref().and_then(|service| readings.lock().remove(service));
            async move {
                let service = service.unwrap_or_default();
                match reading {
                    Some(reading) => {
                        Ok(ToolOutput::text(format!("reading of {service}: {reading}; reset")))
                    }
                    None => Err(ToolError::permanent(format!(
                        "the gauge of {service:?} holds nothing: it was reset, or is not there"
                    ))),
                }
            }
        }))
    }
}

impl Service {
    pub(crate) fn fact(&self, field: Field) -> &str {
        self.facts.get(&field).map_or("", String::as_str)
    }

    fn settings(&self) -> String {
        let name = &self.name;
        let mut text =
            format!("# Settings of {name}\n\n[listen]\nport = {}\n", self.fact(Field::Port));
        for section in ["retry", "queue", "cache", "metrics", "tracing"] {
            let _ = write!(text, "\n[{section}]\nenabled = true\nowner = \"{name}-team\"\n");
        }
        text
    }

    fn log(&self) -> String {
        let mut numbers = Numbers(self.seed);
        let at = numbers.below(self.log_lines);
        let mut text = String::new();
        for line in 0..self.log_lines {
            let (minute, second) = (line / 60 % 1_440, line % 60);
            let (hour, minute) = (minute / 60, minute % 60);
            let _ = write!(text, "2026-03-04T{hour:02}:{minute:02}:{second:02}Z ");
            if line == at {
                let _ = writeln!(
                    text,
                    "ERROR {} gave up on incident {}",
                    self.name,
                    self.fact(Field::Incident)
                );
            } else {
                let said = LINES.get(numbers.below(LINES.len() as u64) as usize);
                let worker = numbers.below(64);
                let _ = writeln!(
                    text,
                    "INFO {} worker {worker:02} {}",
                    self.name,
                    said.copied().unwrap_or_default()
                );
            }
        }
        text
    }

    fn note(&self) -> String {
        let name = &self.name;
        format!(
            "# {name} 的说明\n\n{name} 是项目里的一项服务，由 {name}-team 维护。\n\n\
             ## 超时\n\n{name} 的超时上限是 {}，超过之后任务会被放弃并记入日志。\n\n\
             ## 其他\n\n发布前请先阅读 services/{name}.toml，改动需要两个人确认。\n",
            self.fact(Field::Limit)
        )
    }
}
