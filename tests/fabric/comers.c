/* Peers that come and go, one after the other, by libfabric: each sends its address, is inserted, answered and removed,
 * and ends; every third one ends without closing its endpoint. Its number, and what the provider keeps of it, serve the
 * next one. Arguments: how many, bytes of a message.
 * The variable OTHER is the node of those who come (PERUSAL_FABRIC_NODE). */
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LONGEST = 1 << 20, HELLO = 1, ANSWER = 2 };

static struct fid_ep *ep;
static struct fid_cq *cq;
static struct fid_av *av;
static char name[64], bytes[LONGEST], back[LONGEST];
static size_t name_length = sizeof name;

static void check(int is_right, const char *what)
{
    if (!is_right) {
        fprintf(stderr, "wrong: %s (process %d)\n", what, (int)getpid());
        exit(3);
    }
}

static void open_endpoint(void)
{
    struct fi_info *hints = fi_allocinfo(), *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fi_av_attr vector = {.type = FI_AV_TABLE};
    struct fi_cq_attr queue = {.format = FI_CQ_FORMAT_TAGGED};
    hints->caps = FI_TAGGED | FI_SOURCE;
    hints->ep_attr->type = FI_EP_RDM;
    hints->fabric_attr->prov_name = strdup("perusal");
    check(fi_getinfo(FI_VERSION(2, 0), NULL, NULL, 0, hints, &info) == 0, "fi_getinfo");
    check(fi_fabric(info->fabric_attr, &fabric, NULL) == 0, "fi_fabric");
    check(fi_domain(fabric, info, &domain, NULL) == 0, "fi_domain");
    check(fi_av_open(domain, &vector, &av, NULL) == 0, "fi_av_open");
    check(fi_cq_open(domain, &queue, &cq, NULL) == 0, "fi_cq_open");
    check(fi_endpoint(domain, info, &ep, NULL) == 0, "fi_endpoint");
    check(fi_ep_bind(ep, &av->fid, 0) == 0 && fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV) == 0, "fi_ep_bind");
    check(fi_enable(ep) == 0 && fi_getname(&ep->fid, name, &name_length) == 0, "fi_enable");
}

/* Waits for a completion. 1: a receive, 0: a send, -1: an error. */
static int next(void)
{
    struct fi_cq_tagged_entry entry;
    struct fi_cq_err_entry error = {0};
    for (;;) {
        ssize_t read = fi_cq_read(cq, &entry, 1);
        if (read == 1) return (entry.flags & FI_RECV) != 0;
        if (read == -FI_EAVAIL) return fi_cq_readerr(cq, &error, 0), -1;
    }
}

static int send_to(fi_addr_t to, size_t length, uint64_t tag)
{
    ssize_t error;
    while ((error = fi_tsend(ep, bytes, length, NULL, to, tag, NULL)) == -FI_EAGAIN) fi_cq_read(cq, NULL, 0);
    return error == 0;
}

/* Comes, and goes when it is answered. */
static int come(const char *host, size_t length, int closes)
{
    fi_addr_t to;
    check(fi_av_insert(av, host, 1, &to, 0, NULL) == 1, "the host's address");
    memset(bytes, 7, length);
    memcpy(bytes, name, name_length);
    check(fi_trecv(ep, back, sizeof back, NULL, FI_ADDR_UNSPEC, ANSWER, 0, NULL) == 0, "a receive");
    check(send_to(to, length, HELLO), "a send");
    int end;
    while ((end = next()) == 0) {}
    check(end == 1 && back[length - 1] == 9, "the answer");
    if (!closes) _exit(0);
    return fi_close(&ep->fid) != 0;
}

int main(int argc, char **argv)
{
    int count = argc > 2 ? atoi(argv[1]) : 0;
    size_t length = argc > 2 ? atoi(argv[2]) : 0;
    check(length >= sizeof name && length <= LONGEST, "arguments");
    open_endpoint();
    if (argc > 3) return come(argv[3], length, count);
    for (int at = 0; at < count; at++) {
        check(fi_trecv(ep, bytes, sizeof bytes, NULL, FI_ADDR_UNSPEC, HELLO, 0, NULL) == 0, "a receive");
        pid_t child = fork();
        if (child == 0) {
            setenv("PERUSAL_FABRIC_NODE", getenv("OTHER"), 1);
            execl(argv[0], argv[0], at % 3 == 0 ? "0" : "1", argv[2], name, (char *)NULL);
            _exit(9);
        }
        fi_addr_t from;
        check(next() == 1 && bytes[length - 1] == 7, "a hello");
        check(fi_av_insert(av, bytes, 1, &from, 0, NULL) == 1 && from == 0, "the place that is free");
        memset(bytes, 9, length);
        check(send_to(from, length, ANSWER), "an answer");
        /* Whoever has its answer may be gone before its last word comes. */
        next();
        check(fi_av_remove(av, &from, 1, 0) == 0, "a number to remove");
        int status;
        while (waitpid(child, &status, WNOHANG) == 0) fi_cq_read(cq, NULL, 0);
        check(status == 0, "the end of the one who came");
    }
    puts("No Errors");
    return fi_close(&ep->fid) != 0;
}
