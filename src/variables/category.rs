//! The tree that sorts control variables, performance variables and events (MPI 5.0 §15.3.9).
//!
//! The tree is fixed for the life of a process, so the stamp that MPI_T_category_changed gives never changes.

/// What MPI_T_category_changed gives.
pub const STAMP: i32 = 1;

/// One branch of the tree; its place in the table is its index in MPI_T.
#[derive(Debug)]
pub struct CategoryRow {
    /// Which.
    pub id: Category,
    /// Its name; unique.
    pub name: &'static str,
    /// The branch that it grows from; `None` for the root.
    pub parent: Option<Category>,
    /// What is found there.
    pub what: &'static str,
}

macro_rules! tree {
    ($($id:ident $name:literal in $parent:expr => $what:literal;)*) => {
        /// A branch of the tree.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(usize)]
        pub enum Category { $(#[doc = $what] $id),* }

        /// The tree, a parent before its children.
        pub static CATEGORIES: &[CategoryRow] =
            &[$(CategoryRow { id: Category::$id, name: $name, parent: $parent, what: $what }),*];
    };
}

tree! {
    Perusal "perusal" in None => "Everything that perusal shows, and everything that can be set";
    Job "job" in Some(Category::Perusal) => "The job: its memory, its ranks and their CPUs";
    Messages "messages" in Some(Category::Perusal) => "Messages from rank to rank";
    Queues "queues" in Some(Category::Messages) => "Posted receives, unexpected messages, and the search in them";
    Protocols "protocols" in Some(Category::Messages) => "Messages and bytes by the protocol that carried them";
    Copies "copies" in Some(Category::Messages) => "How large messages are copied";
    Requests "requests" in Some(Category::Messages) => "Requests that are alive";
    Partitions "partitions" in Some(Category::Messages) => "Partitioned messages and their partitions";
    Rings "rings" in Some(Category::Perusal) => "The rings that carry records between two ranks";
    Doorbell "doorbell" in Some(Category::Perusal) => "Waiting: polling, yielding, sleeping and waking";
    Collectives "collectives" in Some(Category::Perusal) => "Collective operations and their algorithms";
    OneSided "one_sided" in Some(Category::Perusal) => "Windows: one-sided operations, epochs and locks";
    Files "files" in Some(Category::Perusal) => "Files: accesses and their locks";
    Events "events" in Some(Category::Perusal) => "Events: PERUSE, MPI_T events and their buffers";
}

impl Category {
    /// Its row.
    #[must_use]
    pub fn row(self) -> &'static CategoryRow {
        &CATEGORIES[self as usize]
    }

    /// The branches that grow from this one, in the order of the table.
    pub fn children(self) -> impl Iterator<Item = Category> {
        CATEGORIES.iter().filter(move |row| row.parent == Some(self)).map(|row| row.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_a_tree_with_unique_names() {
        for (index, row) in CATEGORIES.iter().enumerate() {
            assert_eq!(row.id as usize, index);
            assert_eq!(row.parent.is_none(), index == 0, "one root");
            assert!(row.parent.is_none_or(|parent| (parent as usize) < index), "parents come first");
            assert!(CATEGORIES[..index].iter().all(|other| other.name != row.name), "{}", row.name);
        }
        let below: usize = CATEGORIES.iter().map(|row| row.id.children().count()).sum();
        assert_eq!(below, CATEGORIES.len() - 1);
    }
}
