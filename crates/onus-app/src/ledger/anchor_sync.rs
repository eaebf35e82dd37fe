//! What the anchor outside the store holds, and how a checkpoint gets there.

use onus_core::hash::encode_hex;
use onus_core::id::{Generation, Seq};
use onus_core::ledger::{Checkpoint, Head};
use onus_core::refusal::Refusal;
use onus_host::anchor::Anchor;
use onus_store::read::ledger::StoredCheckpoint;

const CHECKPOINT_FILE: &str = "checkpoint.json";
const SIGNATURE_FILE: &str = "signature";

/// The heads that moved since the checkpoint anchored before, in files of bounded size.
fn heads_file(number: usize) -> String {
    match number {
        0 => "heads.jsonl".to_owned(),
        _ => format!("heads-{}.jsonl", number + 1),
    }
}

/// The anchor refuses files much larger than this.
const HEADS_FILE_MAX: usize = 32 * 1024 * 1024;

/// The newest anchored checkpoint.
#[derive(Debug, Clone)]
pub(crate) enum Tip {
    /// Nothing was anchored yet.
    None,
    Checkpoint {
        id: String,
        checkpoint: Checkpoint,
    },
    /// Something that no checkpoint is.
    Unreadable {
        id: String,
    },
}

impl Tip {
    pub(crate) fn read(anchor: &Anchor) -> Result<Tip, Refusal> {
        let Some(id) = anchor.tip()? else {
            return Ok(Tip::None);
        };
        let document = anchor.read(&id, CHECKPOINT_FILE)?;
        Ok(match document.and_then(|bytes| serde_json::from_slice(&bytes).ok()) {
            Some(checkpoint) => Tip::Checkpoint { id, checkpoint },
            None => Tip::Unreadable { id },
        })
    }

    pub(crate) fn id(&self) -> Option<&str> {
        match self {
            Tip::None => None,
            Tip::Checkpoint { id, .. } | Tip::Unreadable { id } => Some(id),
        }
    }

    pub(crate) fn generation(&self) -> Option<Generation> {
        match self {
            Tip::Checkpoint { checkpoint, .. } => Some(checkpoint.generation),
            Tip::None | Tip::Unreadable { .. } => None,
        }
    }

    /// How a store with these checkpoints, in this generation, stands to the anchor.
    pub(crate) fn standing(&self, stored: &[StoredCheckpoint], generation: Generation) -> AnchorStanding {
        match self {
            Tip::None => AnchorStanding::Bare,
            Tip::Unreadable { .. } => AnchorStanding::Behind,
            Tip::Checkpoint { checkpoint, .. } if is_stored(checkpoint, stored) => {
                AnchorStanding::Known { seq: checkpoint.seq }
            }
            // Only a person raises the generation, and always above the anchor's: they have seen it.
            Tip::Checkpoint { checkpoint, .. } if checkpoint.generation < generation => {
                AnchorStanding::Acknowledged
            }
            Tip::Checkpoint { .. } => AnchorStanding::Behind,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnchorStanding {
    /// Nothing was anchored yet.
    Bare,
    /// The tip is the store's own checkpoint up to `seq`.
    Known { seq: Seq },
    /// The tip belongs to a life of the store that a person gave up.
    Acknowledged,
    /// The anchor has seen what the store has not.
    Behind,
}

pub(super) fn is_stored(checkpoint: &Checkpoint, stored: &[StoredCheckpoint]) -> bool {
    stored.iter().any(|own| {
        own.seq == checkpoint.seq
            && serde_json::from_str::<Checkpoint>(&own.document).is_ok_and(|own| own == *checkpoint)
    })
}

/// Anchors a checkpoint behind `expected`, with the heads that moved since the one before.
pub(super) fn append(
    anchor: &Anchor,
    expected: Option<&str>,
    stored: &StoredCheckpoint,
    heads: &[Head],
) -> Result<String, Refusal> {
    let signature = encode_hex(&stored.signature);
    let heads = heads_files(heads).map_err(|error| super::unexpected(&error))?;
    let mut files: Vec<(&str, &[u8])> =
        vec![(CHECKPOINT_FILE, stored.document.as_bytes()), (SIGNATURE_FILE, signature.as_bytes())];
    files.extend(heads.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())));
    anchor.append(expected, &files, &format!("Ledger checkpoint {}", stored.seq))
}

fn heads_files(heads: &[Head]) -> Result<Vec<(String, Vec<u8>)>, serde_json::Error> {
    let mut files = vec![Vec::new()];
    for head in heads {
        let line = serde_json::to_vec(head)?;
        match files.last_mut() {
            Some(file) if file.len() + line.len() < HEADS_FILE_MAX => {
                file.extend_from_slice(&line);
                file.push(b'\n');
            }
            _ => files.push([line.as_slice(), b"\n"].concat()),
        }
    }
    Ok(files.into_iter().enumerate().map(|(number, bytes)| (heads_file(number), bytes)).collect())
}

/// One anchored checkpoint, as found.
#[derive(Debug)]
pub(super) struct Anchored {
    pub(super) id: String,
    pub(super) document: Option<Vec<u8>>,
    /// What the document says, where it can be read.
    pub(super) checkpoint: Option<Checkpoint>,
    pub(super) signature: Option<Vec<u8>>,
}

/// The anchor's whole history, the oldest first.
#[derive(Debug)]
pub(super) struct Anchorage {
    anchor: Option<Anchor>,
    pub(super) history: Vec<Anchored>,
    /// Why there is no history to read.
    pub(super) trouble: Option<Refusal>,
}

impl Anchorage {
    pub(super) fn read(anchor: Result<Anchor, Refusal>, at: &mut dyn FnMut(u64)) -> Anchorage {
        let anchor = match anchor {
            Ok(anchor) => anchor,
            Err(trouble) => return Anchorage { anchor: None, history: Vec::new(), trouble: Some(trouble) },
        };
        let mut history = Vec::new();
        let read = anchor.history().and_then(|ids| {
            for id in ids.into_iter().rev() {
                history.push(read_one(&anchor, id)?);
                at(history.len() as u64);
            }
            Ok(())
        });
        Anchorage { anchor: Some(anchor), history, trouble: read.err() }
    }

    /// The heads that an anchored checkpoint brought; nothing where they cannot be read.
    pub(super) fn heads(&self, anchored: &Anchored) -> Option<Vec<Head>> {
        let anchor = self.anchor.as_ref()?;
        let mut heads = Vec::new();
        for number in 0.. {
            match anchor.read(&anchored.id, &heads_file(number)).ok()? {
                None if number == 0 => return None,
                None => break,
                Some(bytes) => {
                    for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                        heads.push(serde_json::from_slice(line).ok()?);
                    }
                }
            }
        }
        Some(heads)
    }
}

fn read_one(anchor: &Anchor, id: String) -> Result<Anchored, Refusal> {
    let document = anchor.read(&id, CHECKPOINT_FILE)?;
    let signature = anchor.read(&id, SIGNATURE_FILE)?;
    let checkpoint = document.as_deref().and_then(|bytes| serde_json::from_slice(bytes).ok());
    Ok(Anchored { id, document, checkpoint, signature })
}
