//! Which NUMA node the pages of the heap come from.
//!
//! Pages that are taken for an owner come from the node that the thread prefers while it takes them. Nothing is left
//! with the file of the job: the kernel keeps such rules by the mappings of single processes, so that the rule of one
//! process would change what another one has said of its neighbours' pages.

/// More nodes than the kernel has.
const NODES: usize = 1024;
/// The kernel takes one bit less than the number says.
const BITS: usize = NODES + 1;
type Nodes = [u64; NODES / 64];

/// What a thread prefers, as the kernel says it.
struct Preference {
    mode: i32,
    nodes: Nodes,
}

impl Preference {
    /// That of the calling thread.
    fn present() -> Option<Self> {
        let (mut mode, mut nodes) = (0, [0; NODES / 64]);
        // SAFETY: the kernel writes a mode, and as many bits as `nodes` has.
        let asked = unsafe {
            libc::syscall(libc::SYS_get_mempolicy, &raw mut mode, nodes.as_mut_ptr(), BITS, 0_usize, 0_usize)
        };
        (asked == 0).then_some(Self { mode, nodes })
    }

    /// Makes it that of the calling thread. The kernel refuses a node that it does not have, or that has no memory; a
    /// container may refuse all of them.
    fn set(&self) -> bool {
        // An empty set is none.
        let bits = if self.nodes.iter().any(|word| *word != 0) { BITS } else { 0 };
        let nodes = if bits > 0 { self.nodes.as_ptr() } else { core::ptr::null() };
        // SAFETY: the kernel reads as many bits as `nodes` has, or none.
        unsafe { libc::syscall(libc::SYS_set_mempolicy, self.mode, nodes, bits) == 0 }
    }
}

/// What is to be preferred again at the end.
struct Before(Preference);

impl Drop for Before {
    fn drop(&mut self) {
        self.0.set();
    }
}

/// Has `take` take memory, of this node as long as it has any. Returns what it returns, and whether the kernel obeys.
pub(super) fn on_node<R>(node: Option<u32>, take: impl FnOnce() -> R) -> (R, bool) {
    let node = node.map(|node| node as usize).filter(|node| *node < NODES && !cfg!(miri));
    let Some((node, before)) = node.zip(Preference::present()) else { return (take(), false) };
    let mut nodes = [0; NODES / 64];
    nodes[node / 64] = 1 << (node % 64);
    let wanted = Preference { mode: libc::MPOL_PREFERRED, nodes };
    if !wanted.set() {
        return (take(), false);
    }
    let _before = Before(before);
    (take(), true)
}
