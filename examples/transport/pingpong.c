/* Two processes over perusal's transport, without MPI: the child learns the parent's address, says its own,
 * and sends back what comes.
 *
 *   cc pingpong.c -Idist/include -Ldist/lib -Wl,-rpath,dist/lib -lperusal-fi -o pingpong && ./pingpong
 */
#include <errno.h>
#include <perusal-transport.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BALL = 1, HELLO = 2, ROUNDS = 1000, LONGEST = 1 << 20 };

static void check(long result, const char *what) {
    char text[128];
    if (result < 0) {
        fprintf(stderr, "%s: %s\n", what, perusal_error_text((int)result, text, sizeof text));
        exit(1);
    }
}

/* Waits for the end of an operation; there is one within a minute. */
static perusal_completion done(perusal_endpoint *endpoint) {
    perusal_completion completion;
    check(perusal_wait(endpoint, &completion, 60000) - 1, "no completion within a minute");
    check(-completion.error, "an operation");
    return completion;
}

static void send_all(perusal_endpoint *endpoint, uint32_t peer, const void *bytes, size_t length) {
    int sent;
    /* The ring has no room: the peer takes messages meanwhile. */
    while ((sent = perusal_send(endpoint, peer, BALL, length, bytes, length, NULL)) == -EAGAIN)
        perusal_progress(endpoint);
    check(sent, "perusal_send");
}

static int child(const char *parent) {
    perusal_endpoint *endpoint;
    char address[PERUSAL_ADDRESS_BYTES];
    char *ball = malloc(LONGEST);
    uint32_t peer;
    check(perusal_endpoint_open(&endpoint), "perusal_endpoint_open");
    check(perusal_peer_add(endpoint, parent, &peer), "perusal_peer_add");
    check(perusal_endpoint_address(endpoint, address), "perusal_endpoint_address");
    check(perusal_inject(endpoint, peer, HELLO, 0, address, strlen(address) + 1), "perusal_inject");
    for (int round = 0; round < ROUNDS; round++) {
        check(perusal_receive(endpoint, peer, BALL, 0, ball, LONGEST, NULL, NULL), "perusal_receive");
        perusal_completion ball_here = done(endpoint);
        send_all(endpoint, peer, ball, ball_here.length);
        done(endpoint);
    }
    free(ball);
    perusal_endpoint_close(endpoint);
    return 0;
}

int main(void) {
    perusal_endpoint *endpoint;
    char own[PERUSAL_ADDRESS_BYTES], other[PERUSAL_ADDRESS_BYTES];
    char *ball = malloc(LONGEST), *back = malloc(LONGEST);
    uint32_t peer;
    int status = 1;
    check(perusal_endpoint_open(&endpoint), "perusal_endpoint_open");
    check(perusal_endpoint_address(endpoint, own), "perusal_endpoint_address");
    /* The child has an endpoint of its own, and leaves this one alone. */
    pid_t pid = fork();
    if (pid == 0)
        exit(child(own));
    check(pid, "fork");

    /* Whoever says hello, whatever else the tag has in its upper half. */
    check(perusal_receive(endpoint, PERUSAL_ANY_PEER, HELLO, UINT64_MAX << 32, other, sizeof other, NULL, NULL), "perusal_receive");
    done(endpoint);
    check(perusal_peer_add(endpoint, other, &peer), "perusal_peer_add");

    memset(ball, 7, LONGEST);
    for (int round = 0; round < ROUNDS; round++) {
        /* Most are short; every hundredth is long. */
        size_t length = round % 100 == 99 ? LONGEST : 8;
        check(perusal_receive(endpoint, peer, BALL, 0, back, LONGEST, back, NULL), "perusal_receive");
        send_all(endpoint, peer, ball, length);
        for (int ends = 0; ends < 2; ends++) {
            perusal_completion end = done(endpoint);
            if (end.received && (end.length != length || end.data != length || end.context != back)) {
                fprintf(stderr, "round %d: %zu bytes came back of %zu\n", round, end.length, length);
                return 1;
            }
        }
        if (memcmp(ball, back, length) != 0)
            return 1;
    }
    waitpid(pid, &status, 0);
    printf("%d rounds; the other one has left: %d\n", ROUNDS, perusal_peer_has_left(endpoint, peer));
    perusal_endpoint_close(endpoint);
    free(ball);
    free(back);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
