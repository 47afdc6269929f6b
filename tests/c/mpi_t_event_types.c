/* Event types can be asked about before MPI_Init: names, elements, the conventions for strings and arrays,
 * and every misuse.
 */
#include "mpi_t_event.h"

static int size_of(MPI_Datatype type)
{
    if (type == MPI_INT || type == MPI_UINT32_T) return 4;
    if (type == MPI_INT64_T || type == MPI_UINT64_T) return 8;
    return 0;
}

static void every_type_describes_itself(void)
{
    for (int i = 0; i < types(); i++) {
        char name[128], desc[4096];
        int name_len = sizeof name, desc_len = sizeof desc, verbosity = 0, num = 64, bind = 0, found = -1;
        MPI_Datatype datatypes[64];
        MPI_Aint places[64];
        MPI_T_enum names;
        MPI_Info info;
        OK(MPI_T_event_get_info(i, name, &name_len, &verbosity, datatypes, places, &num, &names, &info, desc, &desc_len,
                                &bind));
        SAME(name_len, strlen(name) + 1);
        SAME(desc_len, strlen(desc) + 1);
        CHECK(name_len > 1 && desc_len > 1);
        CHECK(verbosity >= MPI_T_VERBOSITY_USER_BASIC && verbosity <= MPI_T_VERBOSITY_MPIDEV_ALL);
        CHECK(bind == MPI_T_BIND_NO_OBJECT || bind == MPI_T_BIND_MPI_COMM || bind == MPI_T_BIND_MPI_WIN ||
              bind == MPI_T_BIND_MPI_FILE);
        CHECK(num >= 0 && num <= 64);
        MPI_Aint end = 0;
        for (int e = 0; e < num; e++) {
            CHECK(size_of(datatypes[e]) > 0);
            CHECK(places[e] >= end);
            end = places[e] + size_of(datatypes[e]);
        }
        if (num > 0) SAME(places[0], 0);
        OK(MPI_T_event_get_index(name, &found));
        SAME(found, i);
        if (num > 0) {
            int items = -1;
            char first[64];
            int value, first_len = sizeof first;
            OK(MPI_T_enum_get_info(names, &items, NULL, NULL));
            SAME(items, num);
            OK(MPI_T_enum_get_item(names, 0, &value, first, &first_len));
            CHECK(strlen(first) > 0);
        } else {
            CHECK(names == MPI_T_ENUM_NULL);
        }
        int keys = -1;
        OK(MPI_Info_get_nkeys(info, &keys));
        /* The buffer's size, and what each element is. */
        SAME(keys, 1 + num);
        CHECK(desc_len <= 160);
        for (int e = 0; e < num; e++) {
            char key[MPI_MAX_INFO_KEY], element[64], text[MPI_MAX_INFO_VAL];
            int value, element_len = sizeof element, text_len = sizeof text, there = 0;
            OK(MPI_T_enum_get_item(names, e, &value, element, &element_len));
            snprintf(key, sizeof key, "perusal_element_%s", element);
            OK(MPI_Info_get_string(info, key, &text_len, text, &there));
            CHECK(there && strlen(text) > 0);
            if (strcmp(element, "operation") == 0) CHECK(strstr(text, "(0 send, 1 recv, ") != NULL);
        }
        OK(MPI_Info_free(&info));
    }
}

static void strings_and_arrays_are_cut_to_the_room_there_is(void)
{
    int index = type_of("PERUSE_COMM_MSG_ARRIVED");
    char name[8] = "#######", desc[1] = "#";
    int name_len = 7, desc_len = 1, num = 2;
    MPI_Datatype datatypes[4] = {MPI_CHAR, MPI_CHAR, MPI_CHAR, MPI_CHAR};
    MPI_Aint places[4] = {-1, -1, -1, -1};
    OK(MPI_T_event_get_info(index, name, &name_len, NULL, datatypes, places, &num, NULL, NULL, desc, &desc_len, NULL));
    CHECK(strcmp(name, "PERUSE") == 0);
    SAME(name[7], 0);
    SAME(name_len, strlen("PERUSE_COMM_MSG_ARRIVED") + 1);
    SAME(desc[0], 0);
    CHECK(desc_len > 1);
    CHECK(num > 2 && datatypes[1] != MPI_CHAR && datatypes[2] == MPI_CHAR && places[2] == -1);

    /* The two steps: ask for the length, then for the string. */
    name_len = 0;
    OK(MPI_T_event_get_info(index, NULL, &name_len, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    char *whole = malloc(name_len);
    OK(MPI_T_event_get_info(index, whole, &name_len, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    CHECK(strcmp(whole, "PERUSE_COMM_MSG_ARRIVED") == 0);
    free(whole);

    /* A length without a string, a string without a length, an array without a number. */
    strcpy(name, "same");
    OK(MPI_T_event_get_info(index, name, NULL, NULL, datatypes, places, NULL, NULL, NULL, NULL, NULL, NULL));
    CHECK(strcmp(name, "same") == 0);
    int elements = num;
    num = 0;
    OK(MPI_T_event_get_info(index, NULL, NULL, NULL, datatypes, places, &num, NULL, NULL, NULL, NULL, NULL));
    SAME(num, elements);
    num = elements;
    OK(MPI_T_event_get_info(index, NULL, NULL, NULL, NULL, NULL, &num, NULL, NULL, NULL, NULL, NULL));
    SAME(num, elements);
    OK(MPI_T_event_get_info(index, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
}

static void misuse_has_the_right_code(void)
{
    int num = types(), index;
    SAME(MPI_T_event_get_num(NULL), MPI_T_ERR_INVALID);
    int wrong[] = {-1, num, 1 << 30};
    for (int i = 0; i < 3; i++)
        SAME(MPI_T_event_get_info(wrong[i], NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
             MPI_T_ERR_INVALID_INDEX);
    SAME(MPI_T_event_get_index("no such event", &index), MPI_T_ERR_INVALID_NAME);
    SAME(MPI_T_event_get_index("", &index), MPI_T_ERR_INVALID_NAME);
    SAME(MPI_T_event_get_index("\xff", &index), MPI_T_ERR_INVALID_NAME);
    SAME(MPI_T_event_get_index(NULL, &index), MPI_T_ERR_INVALID);
    SAME(MPI_T_event_get_index("PERUSE_COMM_MSG_ARRIVED", NULL), MPI_T_ERR_INVALID);
}

static void nothing_works_before_the_beginning_and_after_the_end(void)
{
    MPI_T_event_registration handle = NULL;
    MPI_Info info;
    MPI_Count time;
    int number;
    char data[8];
    SAME(MPI_T_event_get_num(&number), MPI_T_ERR_NOT_INITIALIZED);
    SAME(MPI_T_event_get_info(0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), MPI_T_ERR_NOT_INITIALIZED);
    SAME(MPI_T_event_get_index("x", &number), MPI_T_ERR_NOT_INITIALIZED);
    SAME(MPI_T_event_handle_alloc(0, NULL, MPI_INFO_NULL, &handle), MPI_T_ERR_NOT_INITIALIZED);
    SAME(MPI_T_event_handle_set_info(handle, MPI_INFO_NULL), MPI_T_ERR_NOT_INITIALIZED);
    SAME(MPI_T_event_handle_get_info(handle, &info), MPI_T_ERR_NOT_INITIALIZED);
    SAME(MPI_T_event_register_callback(handle, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, NULL, NULL), MPI_T_ERR_NOT_INITIALIZED);
    SAME(MPI_T_event_callback_set_info(handle, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL), MPI_T_ERR_NOT_INITIALIZED);
    SAME(MPI_T_event_callback_get_info(handle, MPI_T_CB_REQUIRE_NONE, &info), MPI_T_ERR_NOT_INITIALIZED);
    SAME(MPI_T_event_set_dropped_handler(handle, NULL), MPI_T_ERR_NOT_INITIALIZED);
    SAME(MPI_T_event_handle_free(handle, NULL, NULL), MPI_T_ERR_NOT_INITIALIZED);
    SAME(MPI_T_event_read(NULL, 0, data), MPI_T_ERR_NOT_INITIALIZED);
    SAME(MPI_T_event_copy(NULL, data), MPI_T_ERR_NOT_INITIALIZED);
    SAME(MPI_T_event_get_timestamp(NULL, &time), MPI_T_ERR_NOT_INITIALIZED);
    SAME(MPI_T_event_get_source(NULL, &number), MPI_T_ERR_NOT_INITIALIZED);
    SAME(MPI_T_source_get_num(&number), MPI_T_ERR_NOT_INITIALIZED);
    SAME(MPI_T_source_get_info(0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), MPI_T_ERR_NOT_INITIALIZED);
    SAME(MPI_T_source_get_timestamp(0, &time), MPI_T_ERR_NOT_INITIALIZED);
    SAME(MPI_T_category_get_num_events(0, &number), MPI_T_ERR_NOT_INITIALIZED);
    SAME(MPI_T_category_get_events(0, 1, &number), MPI_T_ERR_NOT_INITIALIZED);
}

static void the_first_index_needs_no_object_and_categories_hold_every_type_once(void)
{
    int num = types(), categories, sum = 0;
    char *seen = calloc(num, 1);
    SAME(bind_of(0), MPI_T_BIND_NO_OBJECT);
    OK(MPI_T_category_get_num(&categories));
    for (int c = 0; c < categories; c++) {
        int events = -1;
        OK(MPI_T_category_get_num_events(c, &events));
        int *indices = malloc((events + 1) * sizeof *indices);
        OK(MPI_T_category_get_events(c, events, indices));
        for (int e = 0; e < events; e++) {
            CHECK(indices[e] >= 0 && indices[e] < num);
            CHECK(seen[indices[e]]++ == 0);
        }
        sum += events;
        free(indices);
    }
    SAME(sum, num);
    SAME(MPI_T_category_get_num_events(categories, &sum), MPI_T_ERR_INVALID_INDEX);
    SAME(MPI_T_category_get_events(-1, 0, NULL), MPI_T_ERR_INVALID_INDEX);
    SAME(MPI_T_category_get_num_events(0, NULL), MPI_T_ERR_INVALID);
    free(seen);
}

int main(void)
{
    nothing_works_before_the_beginning_and_after_the_end();
    initialise_tools();
    every_type_describes_itself();
    strings_and_arrays_are_cut_to_the_room_there_is();
    misuse_has_the_right_code();
    the_first_index_needs_no_object_and_categories_hold_every_type_once();
    OK(MPI_T_finalize());
    nothing_works_before_the_beginning_and_after_the_end();
    return verdict();
}
