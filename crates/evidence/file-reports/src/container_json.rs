//! The JSON form of containers and their entries.

use hotswap_bundle::inventory::{ImageRow, InventoryContainer};
use hotswap_bundle::{ContainerImage, HashState};
use serde_json::{Value, json};

/// The note that explains missing facts.
pub const UNREAD: &str =
    "Of large compressed containers the entry table alone was read; --kernels decompresses them.\n";

/// The JSON form of a container, the same in `list` and `inspect`.
pub fn container_json(container: &InventoryContainer<'_>) -> Value {
    let place = &container.found.place;
    json!({
        "place": place.to_string(),
        "members": place.members,
        "section": place.section,
        "offset": place.offset,
        "file_offset": place.file_offset,
        "form": container.found.form.to_string(),
        "compressed": container.found.form.is_compressed_bundle(),
        "size": container.found.bytes.len(),
        "uncompressed_size": container.plain_size,
        "hash": match container.hash {
            HashState::Absent => Value::Null,
            HashState::Right => "right".into(),
            HashState::Wrong => "wrong".into(),
            HashState::Unchecked => "not checked".into(),
        },
        "recorded": container.record.is_some(),
        "entries": container.rows.iter().map(|row| row_json(container, row)).collect::<Vec<_>>(),
        "empty": container.empty.iter().map(empty_json).collect::<Vec<_>>(),
    })
}

fn empty_json(image: &ContainerImage<'_>) -> Value {
    let stated = image.stated.as_ref();
    json!({
        "id": image.id,
        "target": hotswap_bundle::inventory::image_target(image),
        "kind": stated.map(|stated| stated.kind),
        "producer": stated.and_then(|stated| stated.producer.as_ref()),
    })
}

fn row_json(container: &InventoryContainer<'_>, row: &ImageRow<'_>) -> Value {
    json!({
        "number": row.number,
        "id": row.image.id,
        "target": row.target,
        "kind": container.is_read.then(|| row.image.kind.to_string()),
        "size": row.size,
        "kernels": row.kernels(),
        "made": row.made(container),
        "route": row.record.as_ref().map(|record| record.route),
        "source": row.record.as_ref().and_then(|record| record.source.as_ref()),
    })
}
