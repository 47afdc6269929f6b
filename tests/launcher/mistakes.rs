//! The mistakes that `mistakes.c` makes, and what the report of the hang says of each.

/// Mistake, ranks, what the first line says behind `mpiexec: deadlock: `.
pub const MISTAKES: &[(&str, &str, &str)] = &[
    (
        "cyclic-receive",
        "3",
        "ranks 0-2 wait for each other: each waits for a message, and none has sent it yet",
    ),
    (
        "cyclic-send",
        "2",
        "ranks 0 and 1 wait for each other: each waits in a send for its receive, and none receives",
    ),
    (
        "cyclic-ssend",
        "3",
        "ranks 0-2 wait for each other: each waits in a send for its receive, and none receives",
    ),
    ("wrong-tag", "3", "rank 0 waits for tag 7 from rank 1 on 'halo'; from rank 1 there is tag 8"),
    (
        "wrong-tag-late",
        "2",
        "rank 0 waits for tag 7 from rank 1 on 'MPI_COMM_WORLD'; from rank 1 there is tag 8",
    ),
    ("wrong-source", "3", "rank 0 waits for tag 7 from rank 2 on 'MPI_COMM_WORLD'; there is one from rank 1"),
    (
        "wrong-communicator",
        "2",
        "rank 0 waits for tag 7 from rank 1 on 'right'; rank 1 has sent it on 'left'",
    ),
    (
        "missing-send",
        "2",
        "ranks 0 and 1 wait for each other: rank 0 in MPI_Recv (tag 7 on 'MPI_COMM_WORLD') for rank 1, rank 1 in MPI_Barrier no. 1 on 'MPI_COMM_WORLD' for rank 0",
    ),
    (
        "missing-in-barrier",
        "3",
        "ranks 0 and 2 wait for each other: rank 0 in MPI_Barrier no. 1 on 'MPI_COMM_WORLD' for rank 2, rank 2 in MPI_Recv (tag 3 on 'MPI_COMM_WORLD') for rank 0",
    ),
    (
        "different-collectives",
        "3",
        "the ranks call different collective operations on 'MPI_COMM_WORLD': rank 0 MPI_Barrier no. 1, ranks 1 and 2 MPI_Allreduce no. 1 (1 × MPI_INT, MPI_SUM)",
    ),
    (
        "two-communicators",
        "2",
        "ranks 0 and 1 wait for each other: rank 0 in MPI_Barrier no. 2 on 'a' for rank 1, rank 1 in MPI_Barrier no. 2 on 'b' for rank 0",
    ),
    (
        "two-communicators-of-one-name",
        "2",
        "ranks 0 and 1 wait for each other: rank 0 in MPI_Barrier no. 1 on 'halo' for rank 1, rank 1 in MPI_Barrier no. 1 on 'halo' for rank 0; several communicators have the name 'halo'",
    ),
    (
        "name-of-two",
        "2",
        "rank 0 waits for tag 7 from rank 1 on 'halo'; rank 1 has sent it on 'halo'; several communicators have the name 'halo'",
    ),
    (
        "sent-to-itself",
        "2",
        "rank 0 waits for tag 7 from rank 1 on 'MPI_COMM_WORLD'; rank 1 has sent one to itself",
    ),
    (
        "thread-behind-a-mutex",
        "2",
        "ranks 0 and 1 wait for each other: each waits for a message, and none has sent it yet; a thread of rank 0 waits for a mutex that the thread in MPI_Recv holds",
    ),
    (
        "bcast-as-receive-from-any",
        "2",
        "rank 1 waits in MPI_Recv on 'MPI_COMM_WORLD' for any rank; rank 0 has made a collective call (no. 1) there that rank 1 has not",
    ),
    (
        "neighbours-turned-round",
        "3",
        "rank 0 waits in MPI_Neighbor_allgather no. 1 on 'graph' for rank 1, which is in this call, too, and does not have rank 0 as a neighbour",
    ),
    (
        "early-finalize",
        "3",
        "rank 0 waits in MPI_Barrier no. 1 on 'MPI_COMM_WORLD' for rank 1, which is in MPI_Finalize already",
    ),
    (
        "receive-from-finalized",
        "2",
        "rank 0 waits in MPI_Recv (tag 7 on 'MPI_COMM_WORLD') for rank 1, which is in MPI_Finalize already",
    ),
    (
        "probe",
        "2",
        "ranks 0 and 1 wait for each other: rank 0 in MPI_Probe (tag 9 on 'MPI_COMM_WORLD') for rank 1, rank 1 in MPI_Barrier no. 1 on 'MPI_COMM_WORLD' for rank 0",
    ),
    (
        "any-source",
        "3",
        "ranks 1 and 2 wait in MPI_Barrier no. 1 on 'MPI_COMM_WORLD' for rank 0, which waits in MPI_Recv for any rank, tag 9, on 'MPI_COMM_WORLD'",
    ),
    (
        "waitall",
        "2",
        "ranks 0 and 1 wait for each other: rank 0 in MPI_Waitall (tag 2 on 'MPI_COMM_WORLD') for rank 1, rank 1 in MPI_Barrier no. 1 on 'MPI_COMM_WORLD' for rank 0",
    ),
    (
        "bcast-of-the-root-alone",
        "3",
        "the ranks have made different numbers of collective calls on 'MPI_COMM_WORLD': rank 0 MPI_Barrier no. 2, ranks 1 and 2 MPI_Barrier no. 1",
    ),
    (
        "waitany",
        "2",
        "ranks 0 and 1 wait for each other: rank 0 in MPI_Waitany for rank 1, rank 1 in MPI_Barrier no. 1 on 'MPI_COMM_WORLD' for rank 0",
    ),
    ("self-send", "1", "rank 0 waits for itself, in MPI_Ssend (tag 7 on 'MPI_COMM_WORLD')"),
    ("self-receive", "1", "rank 0 waits for itself, in MPI_Recv (tag 7 on 'MPI_COMM_WORLD')"),
    (
        "window-lock",
        "2",
        "ranks 0 and 1 wait for each other: rank 0 in MPI_Barrier no. 3 on 'MPI_COMM_WORLD' for rank 1, rank 1 in MPI_Win_lock for the lock of rank 0's window, which rank 0 holds",
    ),
    (
        "window-start",
        "2",
        "ranks 0 and 1 wait for each other: rank 0 in MPI_Win_start for rank 1, rank 1 in MPI_Barrier no. 2 on 'MPI_COMM_WORLD' for rank 0",
    ),
    (
        "bcast-as-receive",
        "2",
        "rank 1 waits in MPI_Recv (tag 0 on 'MPI_COMM_WORLD') for rank 0, which has made a collective call (no. 1) there that rank 1 has not",
    ),
    (
        "bcast-to-receives",
        "3",
        "rank 1 waits in MPI_Recv (tag 0 on 'MPI_COMM_WORLD') for rank 0, which has made a collective call (no. 1) there that rank 1 has not",
    ),
    (
        "waitany-collectives",
        "2",
        "ranks 0 and 1 wait for each other: rank 0 in MPI_Waitany (MPI_Ibarrier no. 1 on 'halo', MPI_Iallreduce no. 2 on 'MPI_COMM_WORLD') for rank 1, rank 1 in MPI_Recv (tag 3 on 'halo') for rank 0",
    ),
    (
        "allreduce-counts",
        "3",
        "the counts or types of MPI_Allreduce no. 4 on 'MPI_COMM_WORLD' differ: rank 0 (1 × MPI_INT, MPI_SUM), ranks 1 and 2 (1048576 × MPI_INT, MPI_SUM)",
    ),
    (
        "short-operations",
        "3",
        "the operations of MPI_Allreduce no. 9 on 'halo' differ: rank 0 (1 × MPI_INT, MPI_SUM), rank 1 (1 × MPI_FLOAT, MPI_MAX)",
    ),
    (
        "short-types",
        "3",
        "the counts or types of MPI_Bcast no. 9 on 'halo' differ: rank 1 (root 0, 3 × MPI_INT), rank 2 (root 0, 12 × MPI_CHAR)",
    ),
    (
        "nonblocking-collective",
        "2",
        "ranks 0 and 1 wait for each other: rank 0 in MPI_Wait (MPI_Ibarrier no. 1 on 'MPI_COMM_WORLD') for rank 1, rank 1 in MPI_Recv (tag 1 on 'MPI_COMM_WORLD') for rank 0",
    ),
    (
        "nonblocking-missing",
        "3",
        "ranks 0 and 2 wait for each other: rank 0 in MPI_Wait (MPI_Ibarrier no. 7 on 'halo') for rank 2, rank 2 in MPI_Recv (tag 3 on 'halo') for rank 0",
    ),
    (
        "nonblocking-different",
        "2",
        "the ranks call different collective operations on 'MPI_COMM_WORLD': rank 0 MPI_Ibcast no. 1 (root 1, 1 × MPI_INT), rank 1 MPI_Igather no. 1 (root 1, 1 × MPI_INT)",
    ),
    (
        "nonblocking-roots",
        "2",
        "the roots of MPI_Ibcast no. 1 on 'MPI_COMM_WORLD' differ: rank 0 (root 1, 16 × MPI_DOUBLE), rank 1 (root 0, 16 × MPI_DOUBLE)",
    ),
    (
        "nonblocking-and-blocking",
        "2",
        "the ranks call different collective operations on 'MPI_COMM_WORLD': rank 0 MPI_Ibarrier no. 1, rank 1 MPI_Barrier no. 1",
    ),
    (
        "persistent-missing",
        "2",
        "ranks 0 and 1 wait for each other: rank 0 in MPI_Recv (tag 3 on 'MPI_COMM_WORLD') for rank 1, rank 1 in MPI_Wait (MPI_Bcast_init no. 3 on 'MPI_COMM_WORLD') for rank 0",
    ),
    (
        "idup-missing",
        "2",
        "ranks 0 and 1 wait for each other: rank 0 in MPI_Recv (tag 3 on 'MPI_COMM_WORLD') for rank 1, rank 1 in MPI_Wait (MPI_Comm_idup no. 1 on 'MPI_COMM_WORLD') for rank 0",
    ),
    (
        "bcast-roots",
        "2",
        "the roots of MPI_Bcast no. 6 on 'halo' differ: rank 0 (root 0, 1048576 × MPI_INT), rank 1 (root 1, 1048576 × MPI_INT)",
    ),
    (
        "gather-roots",
        "3",
        "the roots of MPI_Gatherv no. 6 on 'halo' differ: rank 0 (root 0), rank 2 (root 2)",
    ),
    (
        "bcast-missing",
        "3",
        "ranks 0 and 1 wait for each other: rank 0 in MPI_Bcast no. 17 on 'halo' for rank 1, rank 1 in MPI_Recv (tag 3 on 'halo') for rank 0",
    ),
    (
        "reduce-missing",
        "3",
        "ranks 0 and 1 wait for each other: rank 0 in MPI_Recv (tag 3 on 'halo') for rank 1, rank 1 in MPI_Reduce no. 5 on 'halo' for rank 0",
    ),
    (
        "neighbours-differ",
        "3",
        "rank 0 waits in MPI_Neighbor_alltoall no. 1 on 'graph' for rank 1, which has made this call and does not have rank 0 as a neighbour",
    ),
    (
        "neighbour-missing",
        "3",
        "ranks 0 and 1 wait for each other: rank 0 in MPI_Neighbor_allgather no. 1 on 'ring' for rank 1, rank 1 in MPI_Recv (tag 3 on 'ring') for rank 0",
    ),
    (
        "partition-not-ready",
        "2",
        "rank 1 waits in MPI_Wait for its partitioned send to rank 0, tag 7, on 'MPI_COMM_WORLD', of which partition 3 (of 4) was never ready",
    ),
    (
        "partition-not-ready-of-all",
        "2",
        "rank 1 waits in MPI_Waitall for its partitioned send to rank 0, tag 7, on 'MPI_COMM_WORLD', of which partitions 1 and 3 (of 4) were never ready",
    ),
    (
        "partitions-as-message",
        "2",
        "ranks 0 and 1 wait for each other: rank 0 in MPI_Recv (tag 7 on 'MPI_COMM_WORLD') for rank 1, rank 1 in MPI_Wait (tag 7 on 'MPI_COMM_WORLD') for rank 0",
    ),
    (
        "two-locks",
        "2",
        "ranks 0 and 1 wait for each other: rank 0 in MPI_Win_lock on window 'counters' for the lock of rank 1's window, which rank 1 holds, rank 1 in MPI_Win_lock on window 'counters' for the lock of rank 0's window, which rank 0 holds",
    ),
    (
        "cycle-and-later-tag",
        "3",
        "ranks 0-2 wait for each other: each waits for a message, and none has sent it yet; rank 0 waits for tag 7 from rank 1 on 'MPI_COMM_WORLD'; from rank 1 there is tag 8",
    ),
    (
        "cycle-and-later-start",
        "3",
        "ranks 0-2 wait for each other: each waits for a message, and none has sent it yet; rank 0 waits in MPI_Recv for rank 1, tag 7, on 'MPI_COMM_WORLD'; rank 1 has a persistent send for that, which is not started",
    ),
    (
        "cycle-and-later-source",
        "3",
        "ranks 0 and 1 wait for each other: each waits for a message, and none has sent it yet; rank 0 waits for tag 7 from rank 1 on 'MPI_COMM_WORLD'; there is one from rank 2",
    ),
    (
        "wrong-source-and-barrier",
        "3",
        "ranks 0 and 1 wait for each other: rank 0 in MPI_Probe (tag 7 on 'MPI_COMM_WORLD') for rank 1, rank 1 in MPI_Barrier no. 1 on 'MPI_COMM_WORLD' for rank 0; rank 0 waits for tag 7 from rank 1 on 'MPI_COMM_WORLD'; there is one from rank 2",
    ),
    (
        "sendrecv-one-way",
        "3",
        "rank 0 waits for tag 7 from rank 1 on 'MPI_COMM_WORLD'; there is one from rank 2",
    ),
    (
        "sendrecv-of-others",
        "3",
        "ranks 0-2 wait for each other: each waits for a message, and none has sent it yet",
    ),
    (
        "ssend-of-another-tag",
        "2",
        "rank 0 waits for tag 7 from rank 1 on 'MPI_COMM_WORLD'; from rank 1 there is tag 8",
    ),
    (
        "lock-of-a-third",
        "3",
        "ranks 0 and 1 wait for each other: rank 0 in MPI_Win_lock on window 'counters' for the lock of rank 2's window, which rank 1 holds, rank 1 in MPI_Recv (tag 3 on 'MPI_COMM_WORLD') for rank 0",
    ),
    (
        "lock-of-own-window",
        "2",
        "ranks 0 and 1 wait for each other: rank 0 in MPI_Win_lock on window 'counters' for the lock of rank 0's window, which rank 1 holds, rank 1 in MPI_Recv (tag 3 on 'MPI_COMM_WORLD') for rank 0",
    ),
    (
        "lock-kept",
        "3",
        "rank 0 waits in MPI_Win_lock on window 'counters' for the lock of rank 2's window, which rank 1 holds; rank 1 is in MPI_Finalize already",
    ),
    (
        "lock-shared",
        "3",
        "rank 0 waits in MPI_Win_lock on window 'counters' for the lock of rank 1's window, which ranks 1 and 2 hold in shared mode; rank 1 is in MPI_Finalize already",
    ),
    (
        "lock-shared-by-one",
        "3",
        "ranks 0 and 2 wait for each other: rank 0 in MPI_Win_lock on window 'counters' for the lock of rank 1's window, which rank 2 holds in shared mode, rank 2 in MPI_Recv (tag 3 on 'MPI_COMM_WORLD') for rank 0",
    ),
    (
        "fence-missing",
        "3",
        "ranks 0 and 1 wait for each other: rank 0 in MPI_Win_fence on window 'counters' for rank 1, rank 1 in MPI_Recv (tag 3 on 'MPI_COMM_WORLD') for rank 0",
    ),
    (
        "window-freed-and-fenced",
        "3",
        "the ranks call different collective operations on window 'counters': rank 0 MPI_Win_free, ranks 1 and 2 MPI_Win_fence",
    ),
    (
        "window-freed-by-some",
        "3",
        "rank 0 waits in MPI_Win_free on window 'counters' for rank 2, which is in MPI_Finalize already",
    ),
    (
        "post-without-start",
        "2",
        "ranks 0 and 1 wait for each other: rank 0 in MPI_Win_wait on window 'counters' for rank 1, rank 1 in MPI_Barrier no. 2 on 'MPI_COMM_WORLD' for rank 0",
    ),
    (
        "file-opened-by-one",
        "3",
        "ranks 0 and 1 wait for each other: rank 0 in MPI_File_open on file '/dev/null' for rank 1, rank 1 in MPI_Barrier no. 1 on 'MPI_COMM_WORLD' for rank 0",
    ),
    (
        "file-written-by-some",
        "3",
        "ranks 0 and 1 wait for each other: rank 0 in MPI_File_write_ordered on file '/dev/null' for rank 1, rank 1 in MPI_Recv (tag 3 on 'MPI_COMM_WORLD') for rank 0",
    ),
    (
        "spawned-and-nothing-sent",
        "1",
        "ranks 0 and 1 wait for each other: each waits for a message, and none has sent it yet",
    ),
    (
        "spawned-and-left",
        "1",
        "rank 0 waits in MPI_Barrier no. 1 on 'children' for rank 2, which is in MPI_Finalize already",
    ),
    (
        "intercomm-root",
        "4",
        "rank 1 waits in MPI_Bcast no. 1 on 'bridge' (root 1, 4 × MPI_INT) for rank 2, which has made its call no. 1 there: it gave another root, or called another function",
    ),
    ("mprobe", "2", "rank 0 waits for tag 7 from rank 1 on 'MPI_COMM_WORLD'; from rank 1 there is tag 8"),
    (
        "waitsome",
        "3",
        "ranks 0 and 1 wait for each other: rank 0 in MPI_Waitsome for rank 1, rank 1 in MPI_Barrier no. 1 on 'MPI_COMM_WORLD' for rank 0",
    ),
    (
        "ibarrier-and-receive",
        "3",
        "ranks 0 and 1 wait for each other: rank 0 in MPI_Recv (tag 3 on 'MPI_COMM_WORLD') for rank 1, rank 1 in MPI_Wait (MPI_Ibarrier no. 1 on 'MPI_COMM_WORLD') for rank 0",
    ),
    (
        "ibarrier-and-finalize",
        "2",
        "rank 1 waits in MPI_Wait (MPI_Ibarrier no. 1 on 'MPI_COMM_WORLD') for rank 0, which is in MPI_Finalize already",
    ),
    (
        "sendrecv-partner",
        "3",
        "rank 0 waits for tag 7 from rank 1 on 'MPI_COMM_WORLD'; there is one from rank 2",
    ),
    (
        "sendrecv-tags",
        "2",
        "rank 0 waits for tag 0 from rank 1 on 'MPI_COMM_WORLD'; from rank 1 there is tag 1",
    ),
    (
        "isendrecv-tags",
        "2",
        "rank 0 waits for tag 0 from rank 1 on 'MPI_COMM_WORLD'; from rank 1 there is tag 1",
    ),
    (
        "isend-waited-for",
        "2",
        "ranks 0 and 1 wait for each other: each waits in a send for its receive, and none receives",
    ),
    (
        "worker-not-told",
        "4",
        "rank 3 waits in MPI_Recv on 'MPI_COMM_WORLD' for rank 0, which is in MPI_Finalize already",
    ),
    (
        "one-step-less",
        "3",
        "ranks 1 and 2 wait for each other: rank 1 in MPI_Allreduce no. 1 on 'MPI_COMM_WORLD' for rank 2, rank 2 in MPI_Sendrecv_replace (tag 7 on 'MPI_COMM_WORLD') for rank 1",
    ),
    (
        "large-order",
        "2",
        "rank 1 waits for tag 2 from rank 0 on 'MPI_COMM_WORLD'; from rank 0 there is tag 1",
    ),
    (
        "numbers-after-creation",
        "3",
        "ranks 0 and 1 wait for each other: rank 0 in MPI_Recv (tag 3 on 'halo') for rank 1, rank 1 in MPI_Comm_dup no. 8 on 'halo' for rank 0",
    ),
    (
        "group-tags",
        "3",
        "the tags of MPI_Comm_create_group on 'MPI_COMM_WORLD' differ: rank 1 waits in it with tag 6, rank 0 gave tag 5",
    ),
    (
        "group-tags-of-two",
        "3",
        "the tags of MPI_Comm_create_group on 'MPI_COMM_WORLD' differ: rank 1 waits in it with tag 6, rank 0 gave tag 5",
    ),
    (
        "group-and-receive",
        "4",
        "ranks 0 and 1 wait for each other: rank 0 in MPI_Comm_create_group on 'MPI_COMM_WORLD' for rank 1, rank 1 in MPI_Recv (tag 3 on 'MPI_COMM_WORLD') for rank 0",
    ),
    (
        "intercomm-tags",
        "4",
        "the tags of MPI_Intercomm_create on 'MPI_COMM_WORLD' differ: rank 0 (tag 5), rank 1 (tag 6)",
    ),
    (
        "send-not-started",
        "2",
        "rank 1 waits in MPI_Recv for rank 0, tag 7, on 'MPI_COMM_WORLD'; rank 0 has a persistent send for that, which is not started",
    ),
    (
        "receive-not-started",
        "2",
        "rank 1 waits in MPI_Waitall for its send to rank 0, tag 7, on 'MPI_COMM_WORLD'; rank 0 has a persistent receive for that, which is not started",
    ),
    (
        "gather-and-receive",
        "3",
        "rank 0 waits in MPI_Gather no. 1 on 'MPI_COMM_WORLD' for rank 1, which waits in MPI_Recv for any rank, any tag, on 'MPI_COMM_WORLD'",
    ),
    (
        "gather-without-two",
        "4",
        "rank 0 waits in MPI_Gather no. 1 on 'MPI_COMM_WORLD' for ranks 1 and 2; rank 1 waits in MPI_Recv for any rank, any tag, on 'MPI_COMM_WORLD'",
    ),
    (
        "buffered-and-not-received",
        "2",
        "ranks 0 and 1 wait for each other: rank 0 in MPI_Buffer_detach (its buffered sends) for rank 1, rank 1 in MPI_Barrier no. 1 on 'MPI_COMM_WORLD' for rank 0",
    ),
    (
        "intercomm-without-root",
        "4",
        "no rank says that it is the root of MPI_Bcast no. 1 on 'bridge' (MPI_ROOT): all give root 0",
    ),
    (
        "intercomm-of-two-roots",
        "4",
        "ranks 0 and 1 each say that they are the root of MPI_Reduce no. 1 on 'bridge' (MPI_ROOT)",
    ),
    (
        "partitions-left-out",
        "2",
        "rank 0 waits in MPI_Wait for its partitioned receive from rank 1, tag 7, on 'MPI_COMM_WORLD', of which partitions 0 and 1 (of 4) have not come; rank 1 waits in MPI_Barrier no. 1 on 'MPI_COMM_WORLD'",
    ),
    (
        "partitions-not-started",
        "2",
        "rank 0 waits in MPI_Wait for its partitioned receive from rank 1, tag 7, on 'MPI_COMM_WORLD', of which partition 0 (of 1) has not come; rank 1 waits in MPI_Finalize",
    ),
    (
        "wrong-destination",
        "3",
        "rank 2 waits for tag 7 from rank 1 on 'MPI_COMM_WORLD'; rank 1 has sent one to rank 0",
    ),
    (
        "split-by-some",
        "3",
        "the ranks call different collective operations on 'MPI_COMM_WORLD': ranks 0 and 1 MPI_Comm_split no. 1, rank 2 MPI_Barrier no. 1",
    ),
    (
        "issend-freed",
        "2",
        "rank 0 waits in MPI_Finalize for its send to rank 1, tag 7, on 'MPI_COMM_WORLD', 1000 bytes, which nobody receives",
    ),
    (
        "agree-and-barrier",
        "3",
        "ranks 1 and 2 wait in MPI_Barrier no. 1 on 'halo' for rank 0, which waits in MPIX_Comm_agree on 'halo'",
    ),
    (
        "agree-and-shrink",
        "3",
        "the ranks call different collective operations on 'halo': rank 0 MPIX_Comm_agree, ranks 1 and 2 MPIX_Comm_shrink",
    ),
    (
        "agree-and-finalize",
        "2",
        "rank 0 waits in MPIX_Comm_agree on 'MPI_COMM_WORLD' for rank 1, which is in MPI_Finalize already",
    ),
    (
        "intercomm-of-no-root",
        "4",
        "rank 1 waits in MPI_Bcast no. 1 on 'bridge' (root 0, 1 × MPI_INT) for rank 0, which has made its call no. 1 there: it gave another root, or called another function",
    ),
    (
        "bcast-of-another-root",
        "3",
        "rank 1 waits in MPI_Bcast no. 1 on 'MPI_COMM_WORLD' (root 2, 1 × MPI_INT) for rank 2, which has made its call no. 1 there: it gave another root, or called another function",
    ),
    (
        "intercomm-leader",
        "4",
        "rank 0 waits in MPI_Intercomm_create on 'MPI_COMM_WORLD' for rank 3 as the leader of the other group, which is in that call, and not the leader of its group",
    ),
    (
        "group-strings",
        "3",
        "the tags of MPI_Comm_create_from_group on 'MPI_COMM_WORLD' differ: rank 2 waits in it with string tag 'solver', rank 0 gave tag 'mesh'",
    ),
    (
        "strings-of-two-groups",
        "4",
        "the tags of MPI_Intercomm_create_from_groups on 'MPI_COMM_WORLD' differ: rank 1 waits in it with string tag 'odd', rank 0 gave tag 'even'",
    ),
    (
        "strings-of-one-group",
        "4",
        "the tags of MPI_Intercomm_create_from_groups on 'MPI_COMM_WORLD' differ: rank 3 waits in it with string tag 'odd', rank 1 gave tag 'even'",
    ),
    (
        "spawned-and-wrong-communicator",
        "1",
        "rank 2 waits for tag 4 from rank 1 on 'MPI_COMM_WORLD'; rank 0 has sent it on 'MPI_COMM_PARENT'",
    ),
    (
        "partitions-of-another-tag",
        "2",
        "rank 1 waits for tag 8 from rank 0 on 'MPI_COMM_WORLD', in partitions; rank 0 sends tag 7",
    ),
];
