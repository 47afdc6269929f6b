/* Data representations: external32 is big-endian with sizes of its own, a filetype follows them; a program's own is
 * converted by its functions, whose failures are MPI_ERR_CONVERSION.
 * RANKS: 1 2
 */
#include "file.h"

/* A representation in which each int takes 6 bytes: its digits in base 64. */
static int extent(MPI_Datatype type, MPI_Aint *bytes, void *state)
{
    CHECK(type == MPI_INT);
    ++*(int *)state;
    *bytes = 6;
    return MPI_SUCCESS;
}

static int read_ints(void *user, MPI_Datatype type, int count, void *file, MPI_Offset position, void *state)
{
    (void)state;
    CHECK(type == MPI_INT);
    for (int i = 0; i < count; i++) {
        unsigned value = 0;
        for (int d = 0; d < 6; d++) value = value << 6 | (unsigned)(((char *)file)[6 * i + d] - '!');
        ((unsigned *)user)[position + i] = value;
    }
    return MPI_SUCCESS;
}

static int write_ints(void *user, MPI_Datatype type, MPI_Count count, void *file, MPI_Offset position, void *state)
{
    (void)state;
    CHECK(type == MPI_INT);
    for (MPI_Count i = 0; i < count; i++)
        for (int d = 0; d < 6; d++)
            ((char *)file)[6 * i + d] = (char)('!' + (((unsigned *)user)[position + i] >> (30 - 6 * d) & 63));
    return MPI_SUCCESS;
}

static int read_ints_c(void *user, MPI_Datatype type, MPI_Count count, void *file, MPI_Offset position, void *state)
{
    return read_ints(user, type, (int)count, file, position, state);
}

static int extent_of_none(MPI_Datatype type, MPI_Aint *bytes, void *state)
{
    (void)type, (void)bytes;
    return *(int *)state == rank ? MPI_ERR_OTHER : extent(type, bytes, &(int){0});
}

static int fail(void *user, MPI_Datatype type, int count, void *file, MPI_Offset position, void *state)
{
    (void)user, (void)type, (void)count, (void)file, (void)position, (void)state;
    return MPI_ERR_OTHER;
}

static int triple(MPI_Datatype type, MPI_Aint *bytes, void *state)
{
    (void)type, (void)state;
    *bytes = 12;
    return MPI_SUCCESS;
}

/* A representation of pairs of a short and an int: 3 and 5 bytes, with numbers in base 10. Conversions count basic
 * elements, and those of a type go on where they ended in the element before (MPI 5.0 section 14.5.3). */
static int calls_of_pairs, items_of_pairs;

static int extent_of_pairs(MPI_Datatype type, MPI_Aint *bytes, void *state)
{
    (void)state;
    CHECK(type == MPI_SHORT || type == MPI_INT || type == MPI_BYTE);
    *bytes = type == MPI_SHORT ? 3 : type == MPI_INT ? 5 : 1;
    return MPI_SUCCESS;
}

static int convert_pairs(void *user, MPI_Count count, char *file, MPI_Offset position, int write)
{
    struct pair { short first; int second; } *pairs = user;
    calls_of_pairs++;
    items_of_pairs += (int)count;
    for (MPI_Offset item = position; item < position + count; item++) {
        const int digits = item % 2 ? 5 : 3;
        int value = item % 2 ? pairs[item / 2].second : pairs[item / 2].first;
        if (write) {
            for (int d = digits - 1; d >= 0; d--, value /= 10) file[d] = (char)('0' + value % 10);
        } else {
            value = 0;
            for (int d = 0; d < digits; d++) value = value * 10 + file[d] - '0';
            if (item % 2) pairs[item / 2].second = value;
            else pairs[item / 2].first = (short)value;
        }
        file += digits;
    }
    return MPI_SUCCESS;
}

static int read_pairs(void *user, MPI_Datatype type, int count, void *file, MPI_Offset position, void *state)
{
    (void)type, (void)state;
    return convert_pairs(user, count, file, position, 0);
}

static int write_pairs(void *user, MPI_Datatype type, int count, void *file, MPI_Offset position, void *state)
{
    (void)type, (void)state;
    return convert_pairs(user, count, file, position, 1);
}

static void pairs(void)
{
    struct pair { short first; int second; } out[4] = {{1, 10}, {2, 20}, {3, 30}, {4, 40}}, in[4];
    MPI_File file;
    MPI_Status status;
    MPI_Datatype type;
    MPI_Offset at;
    int count;
    char own_name[sizeof name + 16], bytes[33] = "";
    snprintf(own_name, sizeof own_name, "%s.%d", name, rank);
    OK(MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 4}, (MPI_Datatype[]){MPI_SHORT, MPI_INT}, &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Register_datarep("pairs", read_pairs, write_pairs, extent_of_pairs, NULL));
    OK(MPI_File_open(MPI_COMM_SELF, own_name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "pairs", MPI_INFO_NULL));
    OK(MPI_File_write(file, out, 4, type, &status));
    SAME(calls_of_pairs, 1);
    SAME(items_of_pairs, 8);
    OK(MPI_Get_elements(&status, type, &count));
    SAME(count, 8);
    OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    OK(MPI_File_read(file, bytes, 32, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK(strcmp(bytes, "00100010002000200030003000400040") == 0);
    /* The file ends within the second int: three basic elements are whole. */
    OK(MPI_File_set_size(file, 14));
    OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "pairs", MPI_INFO_NULL));
    memset(in, 0, sizeof in);
    OK(MPI_File_read(file, in, 4, type, &status));
    SAME(items_of_pairs, 11);
    OK(MPI_Get_elements(&status, type, &count));
    SAME(count, 3);
    CHECK(in[0].first == 1 && in[0].second == 10 && in[1].first == 2 && in[1].second == 0);
    OK(MPI_File_get_position(file, &at));
    SAME(at, 14);
    OK(MPI_File_close(&file));
    OK(MPI_Type_free(&type));
}

/* Where a representation has no function, an access takes as many bytes as the buffer has, whatever its extents. */
static void unconverted(void)
{
    MPI_File file;
    MPI_Status status;
    int words[6] = {1, 2, 3, 4, 5, 6}, back[6] = {-1, -1, -1, -1, -1, -1}, count;
    char own_name[sizeof name + 16];
    snprintf(own_name, sizeof own_name, "%s.%d", name, rank);
    OK(MPI_Register_datarep("unread", MPI_CONVERSION_FN_NULL, fail, triple, NULL));
    OK(MPI_File_open(MPI_COMM_SELF, own_name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    OK(MPI_File_write(file, words, 6, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "unread", MPI_INFO_NULL));
    OK(MPI_File_read_at(file, 0, back, 3, MPI_INT, &status));
    OK(MPI_Get_count(&status, MPI_INT, &count));
    SAME(count, 3);
    SAME(back[2], 3);
    SAME(back[3], -1);
    CLASS(MPI_File_read_at(file, 0, back, 2, MPI_INT, &status), MPI_ERR_TYPE);
    OK(MPI_File_close(&file));
}

static void external(void)
{
    MPI_File file, plain;
    MPI_Status status;
    MPI_Datatype strided;
    MPI_Aint each;
    int words[6] = {1, 2, 0x01020304, -1, 5, 6}, back[6], count;
    unsigned char bytes[64];
    long longs[3] = {1, -2, 3}, longs_back[3] = {0};
    char own_name[sizeof name + 16];
    snprintf(own_name, sizeof own_name, "%s.%d", name, rank);
    OK(MPI_File_open(MPI_COMM_SELF, own_name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    OK(MPI_File_open(MPI_COMM_SELF, own_name, MPI_MODE_RDONLY, MPI_INFO_NULL, &plain));
    OK(MPI_Type_vector(2, 2, 3, MPI_INT, &strided));
    OK(MPI_Type_commit(&strided));
    OK(MPI_File_set_view(file, 8, MPI_INT, strided, "external32", MPI_INFO_NULL));
    OK(MPI_File_write_at(file, 0, words, 6, MPI_INT, &status));
    OK(MPI_Get_count(&status, MPI_INT, &count));
    SAME(count, 6);
    OK(MPI_File_read_at(plain, 8, bytes, 32, MPI_BYTE, &status));
    SAME(bytes[3], 1);
    SAME(bytes[7], 2);
    SAME(bytes[12] << 24 | bytes[13] << 16 | bytes[14] << 8 | bytes[15], 0x01020304);
    SAME(bytes[19], 255);
    OK(MPI_File_read_at(file, 0, back, 6, MPI_INT, &status));
    SAME(memcmp(words, back, sizeof words), 0);
    MPI_Request request;
    memset(back, 0, sizeof back);
    OK(MPI_File_iread_at(file, 0, back, 6, MPI_INT, &request));
    OK(MPI_Wait(&request, &status));
    SAME(memcmp(words, back, sizeof words), 0);
    /* A type that is shorter or longer there: the filetype shrinks or grows with it. */
    MPI_Aint packed;
    OK(MPI_Pack_external_size("external32", 1, MPI_LONG, &packed));
    OK(MPI_File_get_type_extent(file, MPI_LONG, &each));
    SAME(each, packed);
    MPI_Datatype longs_apart;
    OK(MPI_Type_vector(3, 1, 2, MPI_LONG, &longs_apart));
    OK(MPI_Type_commit(&longs_apart));
    OK(MPI_File_get_type_extent(file, longs_apart, &each));
    SAME(each, 5 * packed);
    OK(MPI_File_set_view(file, 0, MPI_LONG, longs_apart, "external32", MPI_INFO_NULL));
    MPI_Offset at;
    OK(MPI_File_get_byte_offset(file, 2, &at));
    SAME(at, 4 * packed);
    OK(MPI_File_write(file, longs, 3, MPI_LONG, &status));
    OK(MPI_File_seek(file, 0, MPI_SEEK_SET));
    OK(MPI_File_read(file, longs_back, 3, MPI_LONG, &status));
    SAME(memcmp(longs, longs_back, sizeof longs), 0);
    OK(MPI_Get_count(&status, MPI_LONG, &count));
    SAME(count, 3);
    OK(MPI_Type_free(&longs_apart));
    OK(MPI_Type_free(&strided));
    OK(MPI_File_close(&plain));
    OK(MPI_File_close(&file));
}

/* Pairs of two types, and structures, have no padding in the file, where data is byte aligned (MPI 5.0 sections 14.5.2
 * and 14.5.3): they are as MPI_Pack_external has them, by every form of access and in every filetype. */
static int no_padding(MPI_Datatype type, MPI_Aint *bytes, void *state)
{
    (void)state;
    int size;
    OK(MPI_Type_size(type, &size));
    *bytes = size;
    return MPI_SUCCESS;
}

static void put_pairs(int form, MPI_File file, void *out, MPI_Datatype type)
{
    MPI_Request request;
    switch (form) {
    case 0: OK(MPI_File_write_at(file, 0, out, 8, type, MPI_STATUS_IGNORE)); break;
    case 1: OK(MPI_File_write(file, out, 8, type, MPI_STATUS_IGNORE)); break;
    case 2: OK(MPI_File_write_at_all(file, 0, out, 8, type, MPI_STATUS_IGNORE)); break;
    case 3: OK(MPI_File_write_ordered(file, out, 8, type, MPI_STATUS_IGNORE)); break;
    case 4:
        OK(MPI_File_iwrite_at(file, 4, (char *)out + 4 * 32, 4, type, &request));
        OK(MPI_File_write_shared(file, out, 4, type, MPI_STATUS_IGNORE));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        break;
    default:
        OK(MPI_File_write_all_begin(file, out, 8, type));
        OK(MPI_File_write_all_end(file, out, MPI_STATUS_IGNORE));
    }
}

static void get_pairs(int form, MPI_File file, void *in, MPI_Datatype type)
{
    MPI_Request request;
    switch (form) {
    case 0: OK(MPI_File_read_at(file, 0, in, 8, type, MPI_STATUS_IGNORE)); break;
    case 1: OK(MPI_File_read(file, in, 8, type, MPI_STATUS_IGNORE)); break;
    case 2: OK(MPI_File_read_at_all(file, 0, in, 8, type, MPI_STATUS_IGNORE)); break;
    case 3: OK(MPI_File_read_ordered(file, in, 8, type, MPI_STATUS_IGNORE)); break;
    case 4:
        OK(MPI_File_iread_at(file, 4, (char *)in + 4 * 32, 4, type, &request));
        OK(MPI_File_read_shared(file, in, 4, type, MPI_STATUS_IGNORE));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        break;
    default:
        OK(MPI_File_read_all_begin(file, in, 8, type));
        OK(MPI_File_read_all_end(file, in, MPI_STATUS_IGNORE));
    }
}

static void without_padding(void)
{
    struct apart { double first; int second; };
    MPI_Datatype structure, types[] = {MPI_DOUBLE_INT, MPI_SHORT_INT, MPI_LONG_DOUBLE_INT, MPI_LONG_INT, MPI_FLOAT_INT,
                                       MPI_2INT, MPI_DATATYPE_NULL};
    const int n = sizeof types / sizeof *types;
    char own_name[sizeof name + 16];
    MPI_File file, plain;
    OK(MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 8}, (MPI_Datatype[]){MPI_DOUBLE, MPI_INT}, &structure));
    OK(MPI_Type_commit(&structure));
    types[n - 1] = structure;
    OK(MPI_Register_datarep("unpadded", MPI_CONVERSION_FN_NULL, MPI_CONVERSION_FN_NULL, no_padding, NULL));
    snprintf(own_name, sizeof own_name, "%s.%d", name, rank);
    OK(MPI_File_open(MPI_COMM_SELF, own_name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    OK(MPI_File_open(MPI_COMM_SELF, own_name, MPI_MODE_RDONLY, MPI_INFO_NULL, &plain));
    for (int t = 0; t < n; t++) {
        MPI_Datatype spaced, strided;
        MPI_Aint packed, each, lb, at = 0;
        MPI_Offset bytes_there, byte;
        int size_here;
        _Alignas(16) static char out[8 * 32], in[8 * 32];
        char expected[8 * 32], bytes[24 * 32];
        /* In memory each element has 32 bytes, whatever its type. */
        OK(MPI_Type_create_resized(types[t], 0, 32, &spaced));
        OK(MPI_Type_commit(&spaced));
        memset(out, 0, sizeof out);
        for (int i = 0; i < 8; i++) {
            if (types[t] == MPI_DOUBLE_INT || t == n - 1) *(struct apart *)(out + 32 * i) = (struct apart){i + 0.5, -i};
            if (types[t] == MPI_SHORT_INT) ((short *)out)[16 * i] = (short)i, ((int *)out)[8 * i + 1] = -i;
            if (types[t] == MPI_LONG_DOUBLE_INT) *(long double *)(out + 32 * i) = i + 0.5L, *(int *)(out + 32 * i + sizeof(long double)) = -i;
            if (types[t] == MPI_LONG_INT) ((long *)out)[4 * i] = -i, *(int *)(out + 32 * i + sizeof(long)) = i;
            if (types[t] == MPI_FLOAT_INT) ((float *)out)[8 * i] = i + 0.5F, ((int *)out)[8 * i + 1] = -i;
            if (types[t] == MPI_2INT) ((int *)out)[8 * i] = i, ((int *)out)[8 * i + 1] = -i;
        }
        OK(MPI_Pack_external_size("external32", 1, types[t], &packed));
        OK(MPI_Pack_external("external32", out, 8, spaced, expected, sizeof expected, &at));
        SAME(at, 8 * packed);
        OK(MPI_Type_vector(4, 2, 3, types[t], &strided));
        OK(MPI_Type_commit(&strided));
        for (int form = 0; form < 6; form++) {
            OK(MPI_File_set_size(file, 0));
            OK(MPI_File_set_view(file, 3, types[t], types[t], "external32", MPI_INFO_NULL));
            OK(MPI_File_get_type_extent(file, types[t], &each));
            SAME(each, packed);
            OK(MPI_File_get_byte_offset(file, 5, &byte));
            SAME(byte, 3 + 5 * packed);
            put_pairs(form, file, out, spaced);
            OK(MPI_File_get_size(file, &bytes_there));
            SAME(bytes_there, 3 + 8 * packed);
            OK(MPI_File_read_at(plain, 3, bytes, 8 * (int)packed, MPI_BYTE, MPI_STATUS_IGNORE));
            CHECK(memcmp(bytes, expected, 8 * packed) == 0);
            OK(MPI_File_set_view(file, 3, types[t], types[t], "external32", MPI_INFO_NULL));
            memset(in, 0, sizeof in);
            get_pairs(form, file, in, spaced);
            CHECK(memcmp(in, out, sizeof in) == 0);
            /* Two of three. */
            OK(MPI_File_set_size(file, 0));
            OK(MPI_File_set_view(file, 0, types[t], strided, "external32", MPI_INFO_NULL));
            OK(MPI_File_get_type_extent(file, strided, &each));
            SAME(each, 11 * packed);
            put_pairs(form, file, out, spaced);
            OK(MPI_File_read_at(plain, 0, bytes, 11 * (int)packed, MPI_BYTE, MPI_STATUS_IGNORE));
            for (int i = 0; i < 4; i++)
                CHECK(memcmp(bytes + 3 * i * packed, expected + 2 * i * packed, 2 * packed) == 0);
            OK(MPI_File_set_view(file, 0, types[t], strided, "external32", MPI_INFO_NULL));
            memset(in, 0, sizeof in);
            get_pairs(form, file, in, spaced);
            CHECK(memcmp(in, out, sizeof in) == 0);
        }
        OK(MPI_File_set_view(file, 0, types[t], types[t], "unpadded", MPI_INFO_NULL));
        OK(MPI_Type_size(types[t], &size_here));
        OK(MPI_File_get_type_extent(file, types[t], &each));
        SAME(each, size_here);
        OK(MPI_File_set_view(file, 0, types[t], types[t], "native", MPI_INFO_NULL));
        OK(MPI_File_get_type_extent(file, types[t], &each));
        OK(MPI_Type_get_extent(types[t], &lb, &packed));
        SAME(each, packed);
        OK(MPI_Type_free(&spaced));
        OK(MPI_Type_free(&strided));
    }
    OK(MPI_File_close(&plain));
    OK(MPI_File_close(&file));
    OK(MPI_Type_free(&structure));
}

/* The file ends within an element: what is there whole of it arrives, and is counted. */
static void cut_off(void)
{
    MPI_File file;
    MPI_Status status;
    MPI_Datatype pair;
    int words[4] = {-1, -1, -1, -1}, count;
    long value = -2;
    char own_name[sizeof name + 16];
    snprintf(own_name, sizeof own_name, "%s.%d", name, rank);
    OK(MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 4}, (MPI_Datatype[]){MPI_INT, MPI_INT}, &pair));
    OK(MPI_Type_commit(&pair));
    OK(MPI_File_open(MPI_COMM_SELF, own_name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    OK(MPI_File_write(file, "\0\0\0\1\0\0\0\2\0\0\0\3\0\0", 14, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "external32", MPI_INFO_NULL));
    OK(MPI_File_read_at_all(file, 0, words, 2, pair, &status));
    for (int i = 0; i < 3; i++) SAME(words[i], i + 1);
    SAME(words[3], -1);
    OK(MPI_Get_count(&status, pair, &count));
    SAME(count, MPI_UNDEFINED);
    OK(MPI_Get_elements(&status, pair, &count));
    SAME(count, 3);
    /* Not even one element. */
    OK(MPI_File_read_at(file, 12, &value, 1, MPI_LONG, &status));
    SAME(value, -2);
    OK(MPI_Get_elements(&status, MPI_LONG, &count));
    SAME(count, 0);
    /* The pointer stands where the file ends, also where only some of the types have another size there:
     * 2 shorter ones, none of the last. */
    MPI_Datatype mixed;
    MPI_Offset at;
    MPI_Aint shorter;
    struct { long first[2]; double last[2]; } both;
    OK(MPI_Pack_external_size("external32", 2, MPI_LONG, &shorter));
    OK(MPI_Type_create_struct(2, (int[]){2, 2}, (MPI_Aint[]){0, 2 * sizeof(long)}, (MPI_Datatype[]){MPI_LONG, MPI_DOUBLE}, &mixed));
    OK(MPI_Type_commit(&mixed));
    OK(MPI_File_set_size(file, shorter));
    OK(MPI_File_read(file, &both, 1, mixed, &status));
    OK(MPI_Get_elements(&status, mixed, &count));
    SAME(count, 2);
    OK(MPI_File_get_position(file, &at));
    SAME(at, shorter);
    OK(MPI_Type_free(&mixed));
    OK(MPI_File_close(&file));
    OK(MPI_Type_free(&pair));
}

static void own(void)
{
    static int asked = 0;
    MPI_File file;
    MPI_Status status;
    int words[8], back[8], count;
    char bytes[16], shown[MPI_MAX_DATAREP_STRING];
    OK(MPI_Register_datarep_c("digits", read_ints_c, write_ints, extent, &asked));
    CLASS(MPI_Register_datarep("digits", read_ints, MPI_CONVERSION_FN_NULL, extent, &asked), MPI_ERR_DUP_DATAREP);
    CLASS(MPI_Register_datarep("native", read_ints, MPI_CONVERSION_FN_NULL, extent, &asked), MPI_ERR_DUP_DATAREP);
    CLASS(MPI_Register_datarep("", read_ints, MPI_CONVERSION_FN_NULL, extent, &asked), MPI_ERR_ARG);
    OK(MPI_Register_datarep("failing", fail, fail, extent, &asked));
    for (int i = 0; i < 8; i++) words[i] = 1000 * rank + i;
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    MPI_Datatype apart;
    OK(MPI_Type_vector(4, 1, size, MPI_INT, &apart));
    MPI_Datatype tiled;
    OK(MPI_Type_create_subarray(1, (int[]){4 * size}, (int[]){4}, (int[]){4 * rank}, MPI_ORDER_C, MPI_INT, &tiled));
    OK(MPI_Type_commit(&tiled));
    /* Reads, writes and MPI_File_get_type_extent alone may call the functions (MPI 5.0 section 14.5.3). */
    OK(MPI_File_set_view(file, 0, MPI_INT, tiled, "digits", MPI_INFO_NULL));
    OK(MPI_File_seek(file, 3, MPI_SEEK_SET));
    OK(MPI_File_seek(file, 0, MPI_SEEK_SET));
    MPI_Offset disp;
    MPI_Datatype etype, filetype;
    OK(MPI_File_get_view(file, &disp, &etype, &filetype, shown));
    CHECK(strcmp(shown, "digits") == 0);
    OK(MPI_Type_free(&filetype));
    SAME(asked, 0);
    MPI_Aint each;
    OK(MPI_File_get_type_extent(file, MPI_INT, &each));
    SAME(each, 6);
    CHECK(asked > 0);
    OK(MPI_File_write_at_all(file, 0, words, 8, MPI_INT, &status));
    OK(MPI_Get_count(&status, MPI_INT, &count));
    SAME(count, 8);
    OK(MPI_File_read_at_all(file, 0, back, 8, MPI_INT, &status));
    SAME(memcmp(words, back, sizeof words), 0);
    MPI_Request request;
    OK(MPI_File_iread_at(file, 4, back, 4, MPI_INT, &request));
    OK(MPI_Wait(&request, &status));
    SAME(memcmp(words + 4, back, 4 * sizeof *words), 0);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    MPI_Offset bytes_there;
    OK(MPI_File_get_size(file, &bytes_there));
    SAME(bytes_there, 8 * size * 6);
    OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    OK(MPI_File_read_at(file, 24 * rank, bytes, 6, MPI_BYTE, &status));
    SAME(bytes[5] - '!', 1000 * rank % 64);
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "failing", MPI_INFO_NULL));
    CLASS(MPI_File_write_at(file, 0, words, 8, MPI_INT, &status), MPI_ERR_CONVERSION);
    CLASS(MPI_File_read_at(file, 0, words, 8, MPI_INT, &status), MPI_ERR_CONVERSION);
    /* An extent function that fails at the last rank: its accesses do, those of others succeed. */
    int last = size - 1;
    OK(MPI_Register_datarep("endless", read_ints, MPI_CONVERSION_FN_NULL, extent_of_none, &last));
    OK(MPI_File_set_view(file, 0, MPI_INT, tiled, "endless", MPI_INFO_NULL));
    CLASS(MPI_File_read_at_all(file, 0, words, 4, MPI_INT, &status), rank == last ? MPI_ERR_CONVERSION : MPI_SUCCESS);
    OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    OK(MPI_File_read_at(file, 24 * rank, bytes, 6, MPI_BYTE, &status));
    OK(MPI_Type_free(&apart));
    OK(MPI_Type_free(&tiled));
    OK(MPI_File_close(&file));
}

static MPI_File asked_about;
static int asked_for_pointer = 0;

/* An extent function that asks for the pointer of the file, which is being moved. */
static int asking(MPI_Datatype type, MPI_Aint *bytes, void *state)
{
    MPI_Offset at;
    (void)type, (void)state;
    OK(MPI_File_get_position(asked_about, &at));
    asked_for_pointer++;
    *bytes = 12;
    return MPI_SUCCESS;
}

static int threefold(void *user, MPI_Datatype type, int count, void *file, MPI_Offset position, void *state)
{
    (void)type, (void)state;
    for (int i = 0; i < 3 * count; i++) ((int *)file)[i] = ((int *)user)[position + i / 3];
    return MPI_SUCCESS;
}

static void functions_that_ask(void)
{
    int words[4] = {1, 2, 3, 4};
    MPI_Offset at;
    MPI_Request request;
    char own_name[sizeof name + 16];
    snprintf(own_name, sizeof own_name, "%s.%d", name, rank);
    OK(MPI_Register_datarep("asking", MPI_CONVERSION_FN_NULL, threefold, asking, NULL));
    OK(MPI_File_open(MPI_COMM_SELF, own_name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &asked_about));
    OK(MPI_File_set_view(asked_about, 0, MPI_INT, MPI_INT, "asking", MPI_INFO_NULL));
    OK(MPI_File_seek(asked_about, 0, MPI_SEEK_END));
    OK(MPI_File_write(asked_about, words, 4, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_iwrite(asked_about, words, 4, MPI_INT, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_File_get_position(asked_about, &at));
    SAME(at, 8);
    CHECK(asked_for_pointer > 0);
    OK(MPI_File_close(&asked_about));
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    name_file("file_representations");
    external();
    without_padding();
    cut_off();
    unconverted();
    own();
    pairs();
    functions_that_ask();
    MPI_Finalize();
    return verdict();
}
