/* perusal-transport.h: perusal's transport by itself, for those who write an MPI or a runtime.
 *
 * An endpoint belongs to a process, which may have several. Its address is a text, which the program brings to whoever
 * shall send to it; who has the text adds it as a peer. Endpoints open, meet and close while others run; nothing is
 * left of one, however its process ends. Messages between two endpoints match in the order in which they were sent.
 *
 * Nothing moves without a call: perusal_poll, perusal_wait, perusal_probe and perusal_progress move messages, those
 * under way included. An endpoint is used by one thread at a time, and may go from one to another.
 * A child of fork may close one of its parent's, without effect; any other call ends the child, with a sentence.
 *
 * Functions return 0 or more, or an error: minus a number of errno.h, which perusal_error_text puts into words:
 *   EAGAIN        there is no room to the peer now: take completions or wait, and try again; nothing was sent
 *   EHOSTUNREACH  there is no such endpoint: it is closed, or on another machine or another user's
 *   ESHUTDOWN     the peer's endpoint was closed, or its process has ended, while the operation was under way
 *   ENXIO         this endpoint has not added the peer, or has removed it
 *   EBUSY         the peer has as many senders as it has places for
 *   EMSGSIZE      more bytes than an inject takes
 *   EOVERFLOW     the message was longer than the buffer, and its end is lost
 *   ECANCELED     the receive was cancelled
 *   ENOMEM        there is no memory for the rings
 *   EINVAL        an argument is null, or a text is no address
 * and what the system says where it gives no memory or no descriptor (EMFILE).
 *
 * Link with -lperusal-fi. The same in Rust is perusal_fi::transport; what is stable stands in docs/embedding.md. */
#ifndef PERUSAL_TRANSPORT_H
#define PERUSAL_TRANSPORT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Room for an address, with the zero at its end. */
#define PERUSAL_ADDRESS_BYTES 64
/* Any peer, where a receive names one. As the peer of a message: the sender was not added. */
#define PERUSAL_ANY_PEER UINT32_MAX
/* The most that an inject takes. */
#define PERUSAL_INJECT_BYTES 16384

typedef struct perusal_endpoint perusal_endpoint;

/* A receive under way. */
typedef struct perusal_operation {
    uint32_t at, serial;
} perusal_operation;

/* The end of an operation. */
typedef struct perusal_completion {
    void *context;   /* what the caller gave the operation */
    uint64_t tag;    /* of the message received */
    uint64_t data;   /* of the message received */
    size_t length;   /* bytes received */
    uint32_t peer;   /* who sent it */
    int received;    /* 1: a receive; 0: a send */
    int error;       /* 0, or a number of errno.h, positive */
    int reserved;
} perusal_completion;

/* A message that has arrived and that no receive has taken. */
typedef struct perusal_message {
    uint64_t tag, data;
    size_t length;
    uint32_t peer;
    int reserved;
} perusal_message;

int perusal_endpoint_open(perusal_endpoint **endpoint);
/* Ends what is under way; peers see that the endpoint is gone. Null is allowed, and nothing happens. */
void perusal_endpoint_close(perusal_endpoint *endpoint);
/* Writes the address: PERUSAL_ADDRESS_BYTES of room. */
int perusal_endpoint_address(perusal_endpoint *endpoint, char *address);

/* Adds a peer, numbered from 0 in the order of the calls. Whether it is there shows when something is sent. */
int perusal_peer_add(perusal_endpoint *endpoint, const char *address, uint32_t *peer);
/* Ends what is under way with the peer (ESHUTDOWN), receives that name it included; longer messages to it that it has
 * not received end there so, too. The number is not used again. */
int perusal_peer_remove(perusal_endpoint *endpoint, uint32_t peer);
/* 1 if the peer's endpoint is closed or its process has ended, or if it was never added. Costs a system call. */
int perusal_peer_has_left(perusal_endpoint *endpoint, uint32_t peer);

/* Sends bytes, which do not change until the completion. No completion follows an error that is returned. */
int perusal_send(perusal_endpoint *endpoint, uint32_t peer, uint64_t tag, uint64_t data, const void *bytes, size_t length,
                 void *context);
/* Sends at most PERUSAL_INJECT_BYTES, which are copied: there is no completion. */
int perusal_inject(perusal_endpoint *endpoint, uint32_t peer, uint64_t tag, uint64_t data, const void *bytes, size_t length);
/* Receives a message of that peer, or of any, whose tag is `tag` but for the bits of `ignore`. Nobody touches the bytes
 * until the completion. `operation`, unless it is null, is for perusal_cancel. A peer that was not added is an error
 * (ENXIO), here and for perusal_probe: nothing would ever come. */
int perusal_receive(perusal_endpoint *endpoint, uint32_t peer, uint64_t tag, uint64_t ignore, void *bytes, size_t length,
                    void *context, perusal_operation *operation);
/* A receive that no message has met ends (ECANCELED); any other ends as it would. */
int perusal_cancel(perusal_endpoint *endpoint, perusal_operation operation);
/* 1 and the message, unless `message` is null, if one has arrived that such a receive would take; else 0.
 * The message stays. */
int perusal_probe(perusal_endpoint *endpoint, uint32_t peer, uint64_t tag, uint64_t ignore, perusal_message *message);

/* Moves what is under way. 1 if there was anything. */
int perusal_progress(perusal_endpoint *endpoint);
/* Takes up to `count` completions. Returns how many. */
ssize_t perusal_poll(perusal_endpoint *endpoint, perusal_completion *completions, size_t count);
/* Takes one completion, if there is one within so many milliseconds; -1 waits for ever. Returns 1 or 0.
 * The thread sleeps after a while. */
int perusal_wait(perusal_endpoint *endpoint, perusal_completion *completion, int milliseconds);

/* Writes what an error means into `text`, of `length` bytes, and returns that. */
const char *perusal_error_text(int error, char *text, size_t length);

#ifdef __cplusplus
}
#endif

#endif
