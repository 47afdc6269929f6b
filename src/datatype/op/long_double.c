/* Reduction kernels on C's `long double` and on IEEE quadruple precision, which Rust has no types for.
 * Compiled by build.rs.
 *
 * `long double` is x87 extended on x86-64 and quadruple precision on AArch64; quadruple precision is `_Float128` on the
 * one and `long double` on the other. The compiler chooses the instructions, or calls its own runtime.
 */
#include <float.h>
#include <stddef.h>
#include <string.h>

#if LDBL_MANT_DIG == 64
#if defined(__clang__)
typedef __float128 quad;
#else
typedef _Float128 quad;
#endif
/* Ten bytes of value; results take the padding of their second operand. */
#define LONG_DOUBLE_BYTES 10
#elif LDBL_MANT_DIG == 113
typedef long double quad;
#define LONG_DOUBLE_BYTES 16
#else
#error "`long double` is neither x87 extended nor quadruple precision: src/datatype/basic.rs has no machine type for it"
#endif

typedef long double long_double;

_Static_assert(sizeof(long_double) == 16 && sizeof(quad) == 16, "both types have 16 bytes in MPI's datatypes");

#define SLOT 16

/* All functions of one type. `left` and `right` are `n` values (or complex numbers) at any alignment, which do not
 * overlap; right[i] = left[i] op right[i]. */
#define KERNELS(T, BYTES)                                                                                    \
    static T T##_at(const unsigned char *from) {                                                             \
        T value;                                                                                             \
        memcpy(&value, from, sizeof(value));                                                                 \
        return value;                                                                                        \
    }                                                                                                        \
                                                                                                             \
    static void T##_put(unsigned char *to, T value) {                                                        \
        memcpy(to, &value, BYTES);                                                                           \
    }                                                                                                        \
                                                                                                             \
    void perusal_##T##_sum(const unsigned char *left, unsigned char *right, size_t n) {                      \
        for (size_t i = 0; i < n * SLOT; i += SLOT) {                                                        \
            T##_put(right + i, T##_at(left + i) + T##_at(right + i));                                        \
        }                                                                                                    \
    }                                                                                                        \
                                                                                                             \
    void perusal_##T##_prod(const unsigned char *left, unsigned char *right, size_t n) {                     \
        for (size_t i = 0; i < n * SLOT; i += SLOT) {                                                        \
            T##_put(right + i, T##_at(left + i) * T##_at(right + i));                                        \
        }                                                                                                    \
    }                                                                                                        \
                                                                                                             \
    void perusal_##T##_max(const unsigned char *left, unsigned char *right, size_t n) {                      \
        for (size_t i = 0; i < n * SLOT; i += SLOT) {                                                        \
            if (T##_at(left + i) > T##_at(right + i)) {                                                      \
                memcpy(right + i, left + i, SLOT);                                                           \
            }                                                                                                \
        }                                                                                                    \
    }                                                                                                        \
                                                                                                             \
    void perusal_##T##_min(const unsigned char *left, unsigned char *right, size_t n) {                      \
        for (size_t i = 0; i < n * SLOT; i += SLOT) {                                                        \
            if (T##_at(left + i) < T##_at(right + i)) {                                                      \
                memcpy(right + i, left + i, SLOT);                                                           \
            }                                                                                                \
        }                                                                                                    \
    }                                                                                                        \
                                                                                                             \
    /* The rule of the schoolbook, as for Rust's types: no repair of infinities as in C's Annex G. */        \
    void perusal_##T##_complex_prod(const unsigned char *left, unsigned char *right, size_t n) {             \
        for (size_t i = 0; i < n * 2 * SLOT; i += 2 * SLOT) {                                                \
            T a = T##_at(left + i), b = T##_at(left + i + SLOT);                                             \
            T c = T##_at(right + i), d = T##_at(right + i + SLOT);                                           \
            T##_put(right + i, a * c - b * d);                                                               \
            T##_put(right + i + SLOT, a * d + b * c);                                                        \
        }                                                                                                    \
    }                                                                                                        \
                                                                                                             \
    /* Whether the left value is above the right one; false with a NaN. */                                   \
    _Bool perusal_##T##_above(const unsigned char *left, const unsigned char *right) {                       \
        return T##_at(left) > T##_at(right);                                                                 \
    }                                                                                                        \
                                                                                                             \
    /* Whether both are equal; false with a NaN. */                                                          \
    _Bool perusal_##T##_same(const unsigned char *left, const unsigned char *right) {                        \
        return T##_at(left) == T##_at(right);                                                                \
    }

KERNELS(long_double, LONG_DOUBLE_BYTES)
KERNELS(quad, 16)
