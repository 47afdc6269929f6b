//! Programs with a mistake each that no error and no hang shows: what `mpiexec --check` says of them. And programs
//! without one, of which it says nothing.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::common::dist::dist;
use crate::common::jobs::{Ended, start_as};
use crate::common::{root, scratch};

/// Mistake, whether the program ends well all the same, and what two ranks say of it, behind `perusal: check: `. Where
/// it may not end well, the first line of that.
const MISTAKES: &[(&str, bool, &[&str])] = &[
    (
        "receive-never-completed",
        true,
        &[
            "rank 0: MPI_Irecv (from rank 1, tag 7, on 'halo', 4 bytes) was never completed; call MPI_Wait or MPI_Test for its request",
        ],
    ),
    (
        "bcast-of-root-alone",
        true,
        &[
            "the ranks call different collective operations as no. 2 on 'MPI_COMM_WORLD': rank 0 MPI_Bcast (root 0, 1 × MPI_INT), rank 1 MPI_Finalize",
        ],
    ),
    (
        "collective-changed",
        true,
        &[
            "rank 1: the buffer of MPI_Iallreduce (1 × MPI_INT, MPI_SUM) on 'halo' was changed before it was complete; wait for it before",
        ],
    ),
    (
        "buffers-overlap",
        true,
        &[
            "rank 0: MPI_Sendrecv (to rank 1, tag 4, 8 bytes; from rank 1, tag 4, 8 bytes, on 'MPI_COMM_WORLD') writes 4 bytes that it also reads, or writes twice; its buffers must not overlap",
            "rank 1: MPI_Sendrecv (to rank 0, tag 4, 8 bytes; from rank 0, tag 4, 8 bytes, on 'MPI_COMM_WORLD') writes 4 bytes that it also reads, or writes twice; its buffers must not overlap",
            "rank 0: MPI_Gatherv (root 0) on 'halo' writes 4 bytes that it also reads, or writes twice; its buffers must not overlap",
        ],
    ),
    (
        "put-of-another-type",
        true,
        &[
            "rank 0: MPI_Put (rank 1, on window 'shelf', 8 bytes) has 2 × MPI_INT at the origin and 2 × MPI_FLOAT at the target; give both the same type",
        ],
    ),
    (
        "accessed-by-two",
        true,
        &[
            "rank 1: MPI_Get (rank 1, on window 'shelf', 8 bytes) reads 4 bytes, from byte 24 on, that MPI_Put of rank 0 writes, and nothing says which of the two is first; separate them by a fence, or by a flush and a message",
            "rank 0: MPI_Put (rank 1, on window 'shelf', 4 bytes) writes 4 bytes, from byte 0 on, that MPI_Put of rank 0 writes, and nothing says which of the two is first; separate them by a fence, or by a flush and a message",
            "rank 1: MPI_Accumulate (rank 1, on window 'shelf', 4 bytes) updates 4 bytes, from byte 0 on, that MPI_Put of rank 0 writes, and nothing says which of the two is first; separate them by a fence, or by a flush and a message",
            "rank 1: MPI_Fetch_and_op (rank 1, on window 'shelf', 4 bytes) reads 4 bytes, from byte 0 on, that MPI_Put of rank 0 writes, and nothing says which of the two is first; separate them by a fence, or by a flush and a message",
        ],
    ),
    (
        "fence-asserts-wrongly",
        true,
        &[
            "rank 0: MPI_Win_fence with MPI_MODE_NOPRECEDE on window 'shelf' ends MPI_Put (rank 1, on window 'shelf', 4 bytes); leave the assertion out",
        ],
    ),
    (
        "elements-in-one-place",
        true,
        &[
            "rank 0: MPI_Recv (from rank 1, tag 2, on 'halo', 16 bytes) writes elements of its type in one place; a type that receives must not have two elements in one place",
        ],
    ),
    (
        "no-memory",
        true,
        &[
            "rank 0: MPI_Irecv (from rank 1, tag 7, on 'halo', 4 bytes) has a buffer that is no memory of the process, or ends behind it; give the address of the data, and no more elements than there are",
        ],
    ),
    (
        "never-started",
        true,
        &[
            "rank 0: MPI_Send_init (to rank 0, tag 7, on 'halo', 4 bytes) was waited for and never started; call MPI_Start before",
            "rank 1: MPI_Send_init (to rank 1, tag 7, on 'halo', 4 bytes) was waited for and never started; call MPI_Start before",
            "rank 0: MPI_Bcast_init (root 0, 1 × MPI_INT) on 'halo' was waited for and never started; call MPI_Start before",
            "rank 1: MPI_Bcast_init (root 0, 1 × MPI_INT) on 'halo' was waited for and never started; call MPI_Start before",
        ],
    ),
    (
        "freed-while-active",
        true,
        &[
            "rank 0: MPI_Irecv (from rank 1, tag 7, on 'halo', 4 bytes) was freed while it was active, so that nothing says when its message has come; call MPI_Wait instead, or MPI_Cancel before",
        ],
    ),
    (
        "called-by-another-thread",
        true,
        &[
            "rank 0: MPI_Barrier was called by another thread than the one that initialised MPI, and the thread level is MPI_THREAD_FUNNELED; ask MPI_Init_thread for MPI_THREAD_SERIALIZED or MPI_THREAD_MULTIPLE",
            "rank 1: MPI_Barrier was called by another thread than the one that initialised MPI, and the thread level is MPI_THREAD_FUNNELED; ask MPI_Init_thread for MPI_THREAD_SERIALIZED or MPI_THREAD_MULTIPLE",
        ],
    ),
    (
        "called-at-once",
        true,
        &[
            "rank 0: MPI_Barrier was called while another thread was in MPI_Reduce_local, and the thread level is MPI_THREAD_SERIALIZED; let the threads call one after the other, or ask MPI_Init_thread for MPI_THREAD_MULTIPLE",
            "rank 1: MPI_Barrier was called while another thread was in MPI_Reduce_local, and the thread level is MPI_THREAD_SERIALIZED; let the threads call one after the other, or ask MPI_Init_thread for MPI_THREAD_MULTIPLE",
        ],
    ),
    (
        "collective-at-once",
        true,
        &[
            "rank 0: MPI_Barrier on 'MPI_COMM_SELF' was called while another thread was in MPI_Comm_dup on it; let the threads make the collective calls on a communicator one after the other, or give each a communicator",
            "rank 1: MPI_Barrier on 'MPI_COMM_SELF' was called while another thread was in MPI_Comm_dup on it; let the threads make the collective calls on a communicator one after the other, or give each a communicator",
        ],
    ),
    (
        "awaited-by-two",
        true,
        &[
            "rank 0: MPI_Test was called for the request of MPI_Irecv (from rank 0, tag 7, on 'halo', 4 bytes) while another thread was in MPI_Waitsome for it; let one thread wait for a request",
            "rank 1: MPI_Test was called for the request of MPI_Irecv (from rank 1, tag 7, on 'halo', 4 bytes) while another thread was in MPI_Waitsome for it; let one thread wait for a request",
        ],
    ),
    (
        "packed-in-use",
        true,
        &[
            "rank 0: MPI_Pack (4 bytes) uses 4 bytes of the buffer that MPI_Irecv (from rank 0, tag 7, on 'halo', 4 bytes) receives into, which is not complete; wait for it before, or use another buffer",
            "rank 1: MPI_Pack (4 bytes) uses 4 bytes of the buffer that MPI_Irecv (from rank 1, tag 7, on 'halo', 4 bytes) receives into, which is not complete; wait for it before, or use another buffer",
            "rank 0: MPI_Unpack (4 bytes) uses 4 bytes of the buffer that MPI_Issend (to rank 0, tag 8, on 'halo', 4 bytes) sends, which is not complete; wait for it before, or use another buffer",
            "rank 1: MPI_Unpack (4 bytes) uses 4 bytes of the buffer that MPI_Issend (to rank 1, tag 8, on 'halo', 4 bytes) sends, which is not complete; wait for it before, or use another buffer",
        ],
    ),
    (
        "received-where-others-put",
        true,
        &[
            "rank 1: MPI_Recv (from rank 0, tag 7, on 'halo', 8 bytes) writes 4 bytes of this rank's window that MPI_Put of rank 0 writes, and nothing says which of the two is first; separate them by a fence, or by a flush and a message",
        ],
    ),
    ("port-never-closed", true, &["rank 0: a port was never closed; call MPI_Close_port"]),
    (
        "send-never-completed",
        true,
        &[
            "rank 0: MPI_Isend (to rank 1, tag 3, on 'MPI_COMM_WORLD', 16 bytes) was never completed; call MPI_Wait or MPI_Test for its request",
        ],
    ),
    (
        "persistent-never-freed",
        true,
        &[
            "ranks 0 and 1: the persistent request of MPI_Recv_init (from any rank, any tag, on 'MPI_COMM_WORLD', 8 bytes) was never freed; call MPI_Request_free",
        ],
    ),
    (
        "collective-never-completed",
        true,
        &[
            "ranks 0 and 1: MPI_Iallreduce (1 × MPI_INT, MPI_SUM) on 'MPI_COMM_WORLD' was never completed; call MPI_Wait or MPI_Test for its request",
        ],
    ),
    (
        "unreceived",
        true,
        &["rank 0: a message from rank 1, tag 9, on 'halo', 4 bytes, was received by nobody (3 times)"],
    ),
    ("matched-and-left", true, &["rank 0: a message from MPI_Mprobe was never received; call MPI_Mrecv"]),
    (
        "objects-never-freed",
        true,
        &[
            "ranks 0 and 1: a communicator 'rows' from MPI_Comm_split was never freed; call MPI_Comm_free",
            "ranks 0 and 1: a datatype from MPI_Type_vector was never freed; call MPI_Type_free",
            "rank 0: a datatype from MPI_Type_contiguous was never freed; call MPI_Type_free (4 times)",
            "ranks 0 and 1: a group from MPI_Comm_group was never freed; call MPI_Group_free",
            "ranks 0 and 1: a window from MPI_Win_allocate was never freed; call MPI_Win_free",
            "ranks 0 and 1: an operation from MPI_Op_create was never freed; call MPI_Op_free",
            "ranks 0 and 1: an error handler was never freed; call MPI_Errhandler_free",
            "ranks 0 and 1: an info object was never freed; call MPI_Info_free",
            "ranks 0 and 1: a key of attributes from MPI_Comm_create_keyval was never freed; call MPI_Comm_free_keyval or its like",
        ],
    ),
    (
        "roots-differ",
        false,
        &[
            "the roots of MPI_Bcast no. 2 on 'MPI_COMM_WORLD' differ: rank 0 root 0, 4 × MPI_INT; rank 1 root 1, 4 × MPI_INT",
        ],
    ),
    (
        "lengths-differ",
        false,
        &[
            "the lengths of MPI_Reduce no. 3 on 'MPI_COMM_WORLD' differ: rank 0 root 0, 4 × MPI_INT, MPI_SUM; rank 1 root 0, 5 × MPI_INT, MPI_SUM",
        ],
    ),
    (
        "types-differ",
        true,
        &[
            "the types of MPI_Bcast no. 1 on 'halo' differ: rank 0 root 0, 4 × MPI_INT; rank 1 root 0, 4 × MPI_FLOAT",
        ],
    ),
    (
        "received-in-another-type",
        true,
        &[
            "rank 0: MPI_Recv (from rank 1, tag 7, on 'halo', 8 bytes) has received 4 bytes, which is no whole number of MPI_DOUBLE; give the send and its receive the same type",
            "rank 0: MPI_Irecv (from rank 1, tag 8, on 'halo', 24 bytes) has received 12 bytes, which is no whole number of MPI_DOUBLE; give the send and its receive the same type",
            "rank 1: MPI_Sendrecv (from rank 0, tag 9, on 'halo', 8 bytes) has received 4 bytes, which is no whole number of MPI_DOUBLE; give the send and its receive the same type",
            "rank 0: a message from rank 1, tag 9, on 'halo', was sent by MPI_Sendrecv as 2 × MPI_INT and is received as 1 × MPI_DOUBLE; give the send and its receive the same type",
        ],
    ),
    (
        "sent-in-another-type",
        true,
        &[
            "rank 0: a message from rank 1, tag 1, on 'halo', was sent by MPI_Send as 2 × MPI_INT and is received as 2 × MPI_FLOAT; give the send and its receive the same type",
            "rank 0: a message from rank 1, tag 2, on 'halo', was sent by MPI_Ssend as 4000 × MPI_DOUBLE and is received as 4000 × MPI_INT64_T; give the send and its receive the same type",
            "rank 0: a message from rank 1, tag 3, on 'halo', was sent by MPI_Start as 2 × {1 × MPI_INT, 1 × MPI_DOUBLE} and is received as 2 × {1 × MPI_DOUBLE, 1 × MPI_INT}; give the send and its receive the same type",
            "rank 0: a message from rank 0, tag 4, on 'halo', was sent by MPI_Sendrecv as 1 × MPI_DOUBLE and is received as 1 × MPI_LONG; give the send and its receive the same type",
        ],
    ),
    (
        "ready-without-receive",
        true,
        &[
            "rank 0: a message from rank 1, tag 1, on 'halo', was sent by MPI_Rsend in ready mode before its receive began; begin the receive first, or send in another mode",
            "rank 0: a message from rank 1, tag 2, on 'halo', was sent by MPI_Start in ready mode before its receive began; begin the receive first, or send in another mode",
            "rank 0: a message from rank 1, tag 3, on 'halo', was sent by MPI_Irsend in ready mode before its receive began; begin the receive first, or send in another mode",
        ],
    ),
    (
        "operations-differ",
        true,
        &[
            "the operations of MPI_Allreduce no. 2 on 'MPI_COMM_WORLD' differ: rank 0 1 × MPI_DOUBLE, MPI_MAX; rank 1 1 × MPI_DOUBLE, MPI_MIN",
        ],
    ),
    (
        "functions-differ",
        false,
        &[
            "the ranks call different collective operations as no. 2 on 'MPI_COMM_WORLD': rank 0 MPI_Iallreduce (1 × MPI_INT, MPI_SUM), rank 1 MPI_Iallgather (1 × MPI_INT)",
        ],
    ),
    (
        "long-lengths-differ",
        false,
        &[
            "the lengths of MPI_Ibcast no. 2 on 'MPI_COMM_WORLD' differ: rank 0 root 0, 100000 × MPI_INT; rank 1 root 0, 99999 × MPI_INT",
        ],
    ),
    (
        "counts-differ",
        false,
        &[
            "MPI_Alltoallv no. 2 on 'MPI_COMM_WORLD': what some rank sends is not as long as what its receiver expects; compare the counts and types",
        ],
    ),
    (
        "lists-differ",
        false,
        &[
            "the lists of lengths of MPI_Allgatherv no. 2 on 'MPI_COMM_WORLD' differ: rank 0 [1, 1] × MPI_INT; rank 1 [1, 2] × MPI_INT",
        ],
    ),
    (
        "scattered-lists-differ",
        false,
        &[
            "the lists of lengths of MPI_Reduce_scatter no. 1 on 'halo' differ: rank 0 [2, 2] × MPI_INT, MPI_SUM; rank 1 [1, 3] × MPI_INT, MPI_SUM",
        ],
    ),
    (
        "types-of-pieces-differ",
        true,
        &[
            "MPI_Gatherv no. 1 on 'halo': what some rank sends has other types than what its receiver expects; compare the types",
            "MPI_Scatterv no. 2 on 'halo': what some rank sends has other types than what its receiver expects; compare the types",
            "the types of MPI_Allgatherv no. 3 on 'halo' differ: rank 0 [1, 1] × MPI_INT; rank 1 [1, 1] × MPI_FLOAT",
            "MPI_Alltoallv no. 4 on 'halo': what some rank sends has other types than what its receiver expects; compare the types",
            "MPI_Ialltoallw no. 5 on 'halo': what some rank sends has other types than what its receiver expects; compare the types",
            "MPI_Alltoall no. 6 on 'halo': what some rank sends has other types than what its receiver expects; compare the types",
            "the types of MPI_Gather no. 7 on 'halo' differ: rank 0 root 0, 1 × MPI_FLOAT; rank 1 root 0, 1 × MPI_INT",
            "MPI_Neighbor_alltoallv no. 1 on 'graph': what some rank sends has other types than what its receiver expects; compare the types",
        ],
    ),
    (
        "mixtures-differ",
        true,
        &[
            "the types of MPI_Bcast no. 1 on 'halo' differ: rank 0 root 0, 2 × {1 × MPI_FLOAT, 1 × MPI_DOUBLE}; rank 1 root 0, 2 × {1 × MPI_INT, 1 × MPI_DOUBLE}",
        ],
    ),
    (
        "received-twice",
        true,
        &[
            "rank 0: MPI_Irecv (from rank 1, tag 2, on 'MPI_COMM_WORLD', 8 bytes) uses 8 bytes of the buffer that MPI_Irecv (from rank 1, tag 1, on 'MPI_COMM_WORLD', 16 bytes) receives into, which is not complete; wait for it before, or use another buffer",
        ],
    ),
    (
        "sent-and-received",
        true,
        &[
            "rank 0: MPI_Recv (from rank 1, tag 2, on 'MPI_COMM_WORLD', 4 bytes) uses 4 bytes of the buffer that MPI_Isend (to rank 1, tag 1, on 'MPI_COMM_WORLD', 16 bytes) sends, which is not complete; wait for it before, or use another buffer",
        ],
    ),
    (
        "partition-changed",
        true,
        &[
            "rank 1: MPI_Recv (from rank 0, tag 8, on 'halo', 4 bytes) uses 4 bytes of the buffer that MPI_Psend_init (to rank 0, tag 7, on 'halo', 8 bytes) sends, which is not complete; wait for it before, or use another buffer",
            "rank 1: partition 2 of MPI_Psend_init (to rank 0, tag 7, on 'halo', 8 bytes) was changed after it was ready and before the send was complete; wait for the send before",
        ],
    ),
    (
        "exchange-twice",
        true,
        &[
            "rank 0: MPI_Irecv (from rank 1, tag 2, on 'MPI_COMM_WORLD', 4 bytes) uses 4 bytes of the buffer that MPI_Isendrecv (to rank 1, tag 1, 16 bytes; from rank 1, tag 1, 16 bytes, on 'MPI_COMM_WORLD') sends, which is not complete; wait for it before, or use another buffer",
            "rank 1: MPI_Isend (to rank 0, tag 2, on 'halo', 4 bytes) uses 4 bytes of the buffer that MPI_Isendrecv (to rank 0, tag 1, 16 bytes; from rank 0, tag 1, 16 bytes, on 'MPI_COMM_WORLD') receives into, which is not complete; wait for it before, or use another buffer",
        ],
    ),
    (
        "got-into-twice",
        true,
        &[
            "rank 0: MPI_Get (rank 1, on window 'counters', 4 bytes) uses 4 bytes of the buffer that MPI_Get (rank 1, on window 'counters', 16 bytes) writes, which is not complete; flush it or end its epoch before, or use another buffer",
            "rank 0: MPI_Put (rank 0, on window 'counters', 4 bytes) uses 4 bytes of the buffer that MPI_Get (rank 1, on window 'counters', 16 bytes) writes, which is not complete; flush it or end its epoch before, or use another buffer",
        ],
    ),
    (
        "put-and-changed",
        true,
        &[
            "rank 0: the buffer of MPI_Put (rank 1, on window 'counters', 4 bytes) was changed before it was complete; flush it or end its epoch before",
        ],
    ),
    (
        "put-and-freed",
        true,
        &[
            "rank 0: MPI_Get (rank 1, on window 'counters', 4 bytes) was not ended before MPI_Win_free; call MPI_Win_fence between the two",
            "rank 0: MPI_Accumulate (rank 1, on window 'counters', 8 bytes) was not ended before MPI_Win_free; call MPI_Win_fence between the two",
        ],
    ),
    (
        "requested-put-and-received",
        true,
        &[
            "rank 0: MPI_Recv (from rank 1, tag 4, on 'MPI_COMM_WORLD', 4 bytes) uses 4 bytes of the buffer that MPI_Rput (rank 1, on window 'counters', 4 bytes) reads, which is not complete; flush it or end its epoch before, or use another buffer",
            "rank 0: MPI_Rget (rank 1, on window 'counters', 4 bytes) was never completed; call MPI_Wait or MPI_Test for its request",
        ],
    ),
    (
        "read-into-twice",
        true,
        &[
            "rank 0: MPI_File_write_at (file 'checked-file', 32 bytes) uses 32 bytes of the buffer that MPI_File_iread_at (file 'checked-file', 64 bytes) writes, which is not complete; wait for it before, or use another buffer",
            "rank 0: MPI_File_read_at (file 'checked-file', 1 byte) uses 1 byte of the buffer that MPI_File_write_at_all_begin (file 'checked-file', 64 bytes) reads, which is not complete; end the access before, or use another buffer",
        ],
    ),
    (
        "modes-differ",
        false,
        &[
            "the access modes of MPI_File_open no. 2 on 'MPI_COMM_WORLD' differ: rank 0 MPI_MODE_WRONLY | MPI_MODE_CREATE; rank 1 MPI_MODE_RDWR | MPI_MODE_CREATE",
        ],
    ),
    (
        "sizes-differ",
        false,
        &[
            "the sizes of MPI_File_set_size no. 1 on file 'checked-file' differ: rank 0 10 bytes; rank 1 11 bytes",
        ],
    ),
    (
        "split-types-differ",
        true,
        &[
            "the types of MPI_Comm_split_type no. 1 on 'halo' differ: rank 0 MPI_COMM_TYPE_SHARED; rank 1 MPI_COMM_TYPE_HW_UNGUIDED",
        ],
    ),
    (
        "grids-differ",
        true,
        &[
            "the grids of MPI_Cart_create no. 1 on 'halo' differ: rank 0 dimensions [1, 2], periods [false, true]; rank 1 dimensions [2, 1], periods [false, true]",
        ],
    ),
    (
        "groups-of-roots-differ",
        true,
        &[
            "the roots of MPI_Bcast no. 1 on 'bridge' differ: rank 0 root MPI_ROOT, 1 × MPI_INT; rank 1 root MPI_ROOT, 1 × MPI_INT",
        ],
    ),
    (
        "root-of-nobody",
        true,
        &[
            "MPI_Gather no. 1 on 'bridge': the root that one group names is not the one rank of the other group that gives MPI_ROOT",
        ],
    ),
    (
        "partitions-in-use",
        true,
        &[
            "rank 1: MPI_Isend (to rank 0, tag 6, on 'halo', 4 bytes) uses 4 bytes of the buffer that MPI_Precv_init (from rank 0, tag 5, on 'halo', 4 bytes) receives into, which is not complete; wait for it before, or use another buffer",
        ],
    ),
    (
        "attached-in-use",
        true,
        &[
            "rank 0: MPI_Recv (from rank 0, tag 7, on 'halo', 4 bytes) uses 4 bytes of the buffer that MPI_Buffer_attach (4000 bytes) keeps for buffered sends; detach it before, or use another buffer",
            "rank 0: MPI_Bsend (to rank 0, tag 8, on 'halo', 4 bytes) uses 4 bytes of the buffer that MPI_Buffer_attach (4000 bytes) keeps for buffered sends; detach it before, or use another buffer",
            "rank 0: MPI_Comm_attach_buffer (4000 bytes) uses 4 bytes of the buffer that MPI_Irecv (from rank 0, tag 9, on 'halo', 4 bytes) receives into, which is not complete; wait for it before, or use another buffer",
        ],
    ),
    (
        "group-call-left-out",
        true,
        &[
            "rank 1: rank 0 has called MPI_Comm_create_group on 'halo' with tag 3, and this rank, which is in the group, has not; all members of the group must make the call",
            "rank 1: rank 0 has called MPI_Comm_create_from_group, or its like, with string tag 'mesh', and this rank, which is in the group, has not; all members of the group must make the call",
        ],
    ),
    (
        "making-functions-differ",
        false,
        &[
            "the ranks call different collective operations as no. 1 on 'halo': rank 0 MPI_Comm_dup, rank 1 MPI_Comm_split",
        ],
    ),
    (
        "groups-differ",
        true,
        &[
            "rank 0: MPI_Comm_create on 'halo' was given the group of ranks 0 and 1, and rank 1 gave another one; all members of a group must give the same one, in the same order",
        ],
    ),
    (
        "starts-differ",
        true,
        &[
            "the starts of MPI_Bcast_init no. 1 on 'halo' differ: rank 0 started 3 times; rank 1 started 2 times",
            "the starts of MPI_Bcast_init no. 2 on 'halo' differ: rank 0 started 3 times; rank 1 started 2 times",
            "ranks 0 and 1: the persistent request of MPI_Bcast_init (root 0, 1 × MPI_INT) on 'halo' was never freed; call MPI_Request_free",
        ],
    ),
    (
        "hints-differ",
        true,
        &[
            "the hints or sizes of MPI_Win_allocate no. 2 on 'MPI_COMM_WORLD' differ: rank 0 no hint; rank 1 no_locks=true",
            "the assertions of MPI_Win_fence no. 1 on a window without a name differ: rank 0 neither assertion; rank 1 MPI_MODE_NOPRECEDE",
        ],
    ),
    (
        "changed",
        true,
        &[
            "rank 0: the buffer of MPI_Isend (to rank 1, tag 1, on 'MPI_COMM_WORLD', 16 bytes) was changed before it was complete; wait for it before",
        ],
    ),
];

/// Compiles a program, which has the name of its first source.
fn compiled(sources: &[&str]) -> PathBuf {
    let name = Path::new(sources[0]).file_stem().expect("a file has a name");
    let program = scratch("launcher/checks").join(name);
    let mut compiler = Command::new(dist().join("bin/mpicc"));
    compiler.args(["-g", "-O1", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&program);
    compiler.args(sources.iter().map(|source| root().join(source))).arg("-lm");
    assert!(compiler.status().expect("the wrapper runs").success(), "{compiler:?}");
    program
}

/// The sources of the program that makes the mistakes.
const SOURCES: [&str; 6] = [
    "tests/launcher/unchecked.c",
    "tests/launcher/unchecked_comms.c",
    "tests/launcher/unchecked_messages.c",
    "tests/launcher/unchecked_pieces.c",
    "tests/launcher/unchecked_threads.c",
    "tests/launcher/unchecked_windows.c",
];

/// The program of [`SOURCES`].
fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| compiled(&SOURCES))
}

fn run(options: &[&str], program: &Path, arguments: &[&str]) -> Ended {
    let args = [options, &[program.to_str().expect("a path in UTF-8")], arguments].concat();
    let mut mpiexec = Command::new(dist().join("bin/mpiexec"));
    // Programs leave their files there.
    mpiexec.current_dir(scratch("launcher/checks"));
    start_as(&mut mpiexec, &args, Stdio::null()).end()
}

fn said(ended: &Ended) -> Vec<&str> {
    ended.err.lines().filter_map(|line| line.strip_prefix("perusal: check: ")).collect()
}

#[test]
fn every_mistake_is_said_in_its_sentence_and_no_other() {
    let wrong: Vec<String> = MISTAKES
        .iter()
        .filter_map(|(mistake, ends_well, lines)| {
            let ended = run(&["-n", "2", "--check"], program(), &[mistake]);
            let mut said = said(&ended);
            let good = if *ends_well {
                let mut wanted = lines.to_vec();
                wanted.sort_unstable();
                said.sort_unstable();
                ended.code() == 0 && said == wanted
            } else {
                said.first() == lines.first()
            };
            (!good).then(|| format!("{mistake}: wanted {lines:#?}, got {ended:#?}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn nothing_is_said_of_a_program_without_mistakes_or_where_nobody_asks() {
    for ranks in ["1", "2", "5"] {
        let ended = run(&["-n", ranks, "--check"], program(), &["clean"]);
        assert_eq!((ended.code(), ended.err.as_str()), (0, ""), "{ranks}");
    }
    for example in ["examples/heat.c", "examples/pingpong.c"] {
        let ended = run(&["-n", "2", "--check"], &compiled(&[example]), &[]);
        assert_eq!((ended.code(), said(&ended)), (0, vec![]), "{example}: {ended:?}");
    }
    // Some ranks begin their next session while others end theirs.
    let sessions = compiled(&["tests/c/sessions.c"]);
    for _ in 0..3 {
        let ended = run(&["-n", "4", "--check"], &sessions, &[]);
        assert_eq!((ended.code(), said(&ended)), (0, vec![]), "{ended:?}");
    }
    let ended = run(&["-n", "2"], program(), &["objects-never-freed"]);
    assert_eq!((ended.code(), ended.err.as_str()), (0, ""));
}

#[test]
fn after_a_death_each_rank_says_what_its_own_calls_have_left() {
    let ended = run(&["-n", "2", "--check", "--survive"], program(), &["left-after-death"]);
    let wanted = "rank 0: MPI_Irecv (from rank 0, tag 5, on 'MPI_COMM_SELF', 4 bytes) was never completed; call MPI_Wait or MPI_Test for its request";
    assert_eq!(said(&ended), [wanted], "{ended:?}");
}

#[test]
fn the_environment_asks_as_the_option_does() {
    let ended = run(&["-n", "2", "-x", "PERUSAL_CHECK=on"], program(), &["unreceived"]);
    assert_eq!(said(&ended).len(), 1, "{ended:?}");
    let ended = run(&["-n", "2", "-x", "PERUSAL_CHECK=maybe"], program(), &["clean"]);
    assert!(ended.code() != 0 && ended.err.contains("PERUSAL_CHECK"), "{ended:?}");
}
