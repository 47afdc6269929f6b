/* What the test programs share. */
#ifndef CHECK_H
#define CHECK_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0;

/* Notes a failure and goes on. */
#define CHECK(condition)                                                                    \
    do {                                                                                    \
        if (!(condition)) {                                                                 \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);         \
            failures++;                                                                     \
        }                                                                                   \
    } while (0)

/* The same for two integers, which are shown. */
#define SAME(actual, expected)                                                              \
    do {                                                                                    \
        long long actual_ = (long long)(actual), expected_ = (long long)(expected);         \
        if (actual_ != expected_) {                                                         \
            fprintf(stderr, "%s:%d: %s is %lld, expected %lld\n", __FILE__, __LINE__, #actual, actual_, expected_); \
            failures++;                                                                     \
        }                                                                                   \
    } while (0)

/* A call that must succeed. */
#define OK(call) SAME(call, MPI_SUCCESS)

/* A call that must give an error of this class. */
#define CLASS(call, expected)                                                               \
    do {                                                                                    \
        int code_ = (call), class_ = -1;                                                    \
        if (code_ != MPI_SUCCESS) MPI_Error_class(code_, &class_); else class_ = MPI_SUCCESS; \
        if (class_ != (expected)) {                                                         \
            char why_[MPI_MAX_ERROR_STRING] = "";                                           \
            int length_;                                                                    \
            MPI_Error_string(code_, why_, &length_);                                        \
            fprintf(stderr, "%s:%d: %s gives class %d (%s), expected %s\n", __FILE__, __LINE__, #call, class_, why_, #expected); \
            failures++;                                                                     \
        }                                                                                   \
    } while (0)

/* Errors come back as codes from here on. */
static inline void errors_return(void) {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
}

/* The last line of main. */
static inline int verdict(void) { return failures ? 1 : 0; }

#endif
