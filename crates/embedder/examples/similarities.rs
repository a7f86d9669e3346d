//! Embeds three sentences and prints how alike they are, on the model's own scale and on the
//! common one, where 0.72 is "same topic".
//!
//! ```text
//! cargo run -p foldback-embedder --example similarities
//! ```

use foldback_core::Embedder;
use foldback_embedder::StaticEmbedder;

fn main() -> Result<(), foldback_core::EmbedError> {
    let sentences = [
        "I would like to return the keyboard I ordered last week.",
        "How do I send back an item from my order?",
        "The borrow checker rejects this closure.",
    ];
    let embedder = StaticEmbedder::new();
    let vectors = embedder.embed(&sentences)?;
    let rows: Vec<&[f32]> = vectors.rows().collect();
    for (i, (a, first)) in rows.iter().zip(sentences).enumerate() {
        for (b, second) in rows.iter().zip(sentences).skip(i + 1) {
            let cosine: f32 = a.iter().zip(*b).map(|(x, y)| x * y).sum();
            println!("{cosine:.2}  {:.2}  {first}", embedder.calibrated(cosine));
            println!("            {second}");
        }
    }
    Ok(())
}
