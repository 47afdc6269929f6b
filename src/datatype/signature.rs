//! What the data is: the sequence of basic types in a type map, compressed the same way as its layout.
//!
//! It answers how many basic elements a number of received bytes is (MPI_Get_elements), whether a type consists of
//! one basic type only (accumulate, reductions), and it drives the conversion to "external32".

use std::sync::Arc;

use super::basic::Basic;
use super::sequence::Sequence;

/// A sequence of basic types.
#[derive(Debug, Clone)]
pub(super) struct Signature {
    /// Bytes of a packed stream.
    pub bytes: usize,
    /// Basic elements.
    pub elements: usize,
    kind: SignatureKind,
}

#[derive(Debug, Clone)]
enum SignatureKind {
    /// `elements` times one basic type; `None` for no element at all.
    Uniform(Option<Basic>),
    /// `count` times the child.
    Loop { count: usize, child: Arc<Signature> },
    /// One after another.
    Seq(Arc<[Signature]>),
}

impl Signature {
    pub const EMPTY: Self = Self { bytes: 0, elements: 0, kind: SignatureKind::Uniform(None) };

    pub fn basic(basic: Basic) -> Self {
        Self { bytes: basic.size(), elements: 1, kind: SignatureKind::Uniform(Some(basic)) }
    }

    pub fn repeated(&self, count: usize) -> Self {
        if count == 0 || self.elements == 0 {
            return Self::EMPTY;
        }
        if count == 1 {
            return self.clone();
        }
        let (bytes, elements) = (self.bytes * count, self.elements * count);
        match &self.kind {
            SignatureKind::Uniform(_) => Self { bytes, elements, kind: self.kind.clone() },
            SignatureKind::Loop { count: inner, child } => Self {
                bytes,
                elements,
                kind: SignatureKind::Loop { count: count * inner, child: child.clone() },
            },
            SignatureKind::Seq(_) => {
                Self { bytes, elements, kind: SignatureKind::Loop { count, child: Arc::new(self.clone()) } }
            }
        }
    }

    pub fn concat(parts: impl IntoIterator<Item = Signature>) -> Self {
        let mut joined: Vec<Signature> = Vec::new();
        for part in parts {
            if part.elements == 0 {
                continue;
            }
            match (joined.last_mut(), part.uniform()) {
                (Some(last), Some(basic)) if last.uniform() == Some(basic) => {
                    last.bytes += part.bytes;
                    last.elements += part.elements;
                }
                _ => joined.push(part),
            }
        }
        match joined.len() {
            0 => Self::EMPTY,
            1 => joined.remove(0),
            _ => Self {
                bytes: joined.iter().map(|s| s.bytes).sum(),
                elements: joined.iter().map(|s| s.elements).sum(),
                kind: SignatureKind::Seq(joined.into()),
            },
        }
    }

    /// The one basic type of which all elements are.
    pub fn uniform(&self) -> Option<Basic> {
        match &self.kind {
            SignatureKind::Uniform(basic) => *basic,
            _ => None,
        }
    }

    /// How many elements the first `bytes` bytes of the stream are (at most one pass of this signature);
    /// the second value is what is left over of an element that is not whole.
    pub fn elements_in(&self, bytes: usize) -> (usize, usize) {
        if bytes >= self.bytes {
            return (self.elements, 0);
        }
        match &self.kind {
            SignatureKind::Uniform(None) => (0, 0),
            SignatureKind::Uniform(Some(basic)) => (bytes / basic.size(), bytes % basic.size()),
            SignatureKind::Loop { child, .. } => {
                let (elements, rest) = child.elements_in(bytes % child.bytes);
                (bytes / child.bytes * child.elements + elements, rest)
            }
            SignatureKind::Seq(parts) => {
                let (mut left, mut elements) = (bytes, 0);
                for part in parts.iter() {
                    if left < part.bytes {
                        let (more, rest) = part.elements_in(left);
                        return (elements + more, rest);
                    }
                    left -= part.bytes;
                    elements += part.elements;
                }
                (elements, left)
            }
        }
    }

    /// The inverse: bytes of the first `elements` elements (at most one pass).
    pub fn bytes_of(&self, elements: usize) -> usize {
        if elements >= self.elements {
            return self.bytes;
        }
        match &self.kind {
            SignatureKind::Uniform(None) => 0,
            SignatureKind::Uniform(Some(basic)) => elements * basic.size(),
            SignatureKind::Loop { child, .. } => {
                elements / child.elements * child.bytes + child.bytes_of(elements % child.elements)
            }
            SignatureKind::Seq(parts) => {
                let (mut left, mut bytes) = (elements, 0);
                for part in parts.iter() {
                    if left < part.elements {
                        return bytes + part.bytes_of(left);
                    }
                    left -= part.elements;
                    bytes += part.bytes;
                }
                bytes
            }
        }
    }

    /// The first `bytes` bytes of the stream (at most one pass);
    /// `None` if they end within an element, or one may stand for others.
    pub fn sequence(&self, bytes: usize) -> Option<Sequence> {
        let bytes = bytes.min(self.bytes);
        match &self.kind {
            SignatureKind::Uniform(None) => Some(Sequence::EMPTY),
            SignatureKind::Uniform(Some(_)) if bytes == 0 => Some(Sequence::EMPTY),
            SignatureKind::Uniform(Some(basic)) => {
                bytes.is_multiple_of(basic.size()).then(|| Sequence::of(*basic, bytes / basic.size()))?
            }
            SignatureKind::Loop { child, .. } => {
                let whole = child.sequence(child.bytes)?.times(bytes / child.bytes);
                Some(whole.then(child.sequence(bytes % child.bytes)?))
            }
            SignatureKind::Seq(parts) => {
                let mut left = bytes;
                parts.iter().try_fold(Sequence::EMPTY, |before, part| {
                    let here = left.min(part.bytes);
                    left -= here;
                    Some(before.then(part.sequence(here)?))
                })
            }
        }
    }

    /// Calls `f` with each stretch of equal elements, in order.
    pub fn for_each(&self, f: &mut impl FnMut(Basic, usize)) {
        match &self.kind {
            SignatureKind::Uniform(None) => {}
            SignatureKind::Uniform(Some(basic)) => f(*basic, self.elements),
            SignatureKind::Loop { count, child } => (0..*count).for_each(|_| child.for_each(f)),
            SignatureKind::Seq(parts) => parts.iter().for_each(|part| part.for_each(f)),
        }
    }

    /// Bytes of one pass in the "external32" representation.
    pub fn external_bytes(&self) -> usize {
        match &self.kind {
            SignatureKind::Uniform(None) => 0,
            SignatureKind::Uniform(Some(basic)) => self.elements * basic.external_size(),
            SignatureKind::Loop { count, child } => count * child.external_bytes(),
            SignatureKind::Seq(parts) => parts.iter().map(Signature::external_bytes).sum(),
        }
    }
}
