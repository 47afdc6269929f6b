//! Whether the displacements of a type ascend, as those of a file's view must (MPI 5.0 §14.3).

use super::Datatype;
use super::body::{TypeMap, TypeMapKind};

/// How the bytes of a type lie in the order of its type map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayoutOrder {
    /// Displacements ascend, and no byte stands twice.
    Ascending,
    /// Displacements ascend, and some bytes stand twice.
    Overlapping,
    /// Some displacement is less than one before it.
    Unordered,
}

/// Where the first and the last run of a body begin, and where the last ends.
#[derive(Clone, Copy)]
struct Span {
    first: isize,
    last: isize,
    end: isize,
    overlaps: bool,
}

impl Span {
    fn run(at: isize, len: usize) -> Self {
        Self { first: at, last: at, end: at + len as isize, overlaps: false }
    }

    fn shifted(self, by: isize) -> Self {
        Self { first: self.first + by, last: self.last + by, end: self.end + by, ..self }
    }

    /// Both, one behind the other; `None` if the second begins before the first's last run.
    fn then(self, next: Self) -> Option<Self> {
        let overlaps = self.overlaps || next.overlaps || next.first < self.end;
        (next.first >= self.last).then_some(Self {
            first: self.first,
            last: next.last,
            end: self.end.max(next.end),
            overlaps,
        })
    }
}

/// The span of a body that is not empty; `None` if it is not ordered.
fn span(body: &TypeMap) -> Option<Span> {
    let inner = match &body.kind {
        TypeMapKind::Run => Span::run(0, body.size),
        TypeMapKind::Loop { count, stride, child } => {
            let child = span(child)?;
            let two = child.then(child.shifted(*stride))?;
            let rest = (*count as isize - 2) * stride;
            Span { last: two.last + rest, end: two.end + rest, ..two }
        }
        TypeMapKind::Blocks { .. } | TypeMapKind::Runs { .. } => {
            let (mut all, mut ordered) = (None::<Span>, true);
            body.for_each_run(|at, len, _| {
                let run = Span::run(at, len);
                if ordered {
                    let joined = all.map_or(Some(run), |all| all.then(run));
                    ordered = joined.is_some();
                    all = joined;
                }
            });
            all?
        }
        TypeMapKind::Seq { parts, .. } => {
            let mut spans = parts.iter().map(span);
            let first = spans.next()??;
            spans.try_fold(first, |all, next| all.then(next?))?
        }
    };
    Some(inner.shifted(body.offset))
}

impl Datatype {
    /// How the bytes of one element lie.
    #[must_use]
    pub fn layout_order(&self) -> LayoutOrder {
        if self.size() == 0 {
            return LayoutOrder::Ascending;
        }
        match span(&self.0.body) {
            Some(Span { overlaps: false, .. }) => LayoutOrder::Ascending,
            Some(_) => LayoutOrder::Overlapping,
            None => LayoutOrder::Unordered,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi;

    #[test]
    fn order_is_that_of_the_runs() {
        let int = Datatype::predefined(abi::MPI_INT).unwrap();
        let order =
            |lengths: &[usize], at: &[isize]| Datatype::indexed(lengths, at, &int).unwrap().layout_order();
        assert_eq!(order(&[1, 2, 1], &[0, 3, 9]), LayoutOrder::Ascending);
        assert_eq!(order(&[2, 2, 1], &[0, 1, 9]), LayoutOrder::Overlapping);
        assert_eq!(order(&[1, 2, 1], &[3, 0, 9]), LayoutOrder::Unordered);
        let vector = Datatype::vector(5, 2, 3, &int).unwrap();
        assert_eq!(vector.layout_order(), LayoutOrder::Ascending);
        assert_eq!(Datatype::vector(5, 2, 1, &int).unwrap().layout_order(), LayoutOrder::Overlapping);
        assert_eq!(Datatype::vector(5, 2, -3, &int).unwrap().layout_order(), LayoutOrder::Unordered);
        assert_eq!(Datatype::contiguous(3, &vector).unwrap().layout_order(), LayoutOrder::Ascending);
        assert_eq!(Datatype::vector(2, 1, 0, &vector).unwrap().layout_order(), LayoutOrder::Unordered);
    }
}
