/* What a callback reads: elements one by one and as a whole, time and source; and what it gets for a wrong index, a
 * wrong instance, or too late.
 * FLAGS: -pthread
 */
#include "mpi_t_event.h"
#include <pthread.h>

static int index_of_type, source_of_elements, tag_of_elements, elements, events;
static MPI_T_event_instance kept;
static MPI_Count before;

static void *on_another_thread(void *data)
{
    int tag;
    SAME(MPI_T_event_read((MPI_T_event_instance)data, tag_of_elements, &tag), MPI_T_ERR_INVALID_HANDLE);
    return NULL;
}

static void on_message(MPI_T_event_instance instance, MPI_T_event_registration handle, MPI_T_cb_safety level, void *data)
{
    unsigned char image[256], one[16];
    MPI_Datatype datatypes[32];
    MPI_Aint places[32];
    int num = 32, tag = -1, source = -1, number = -1, buffered = *(int *)data;
    MPI_Count time = -1, again = -1, now = -1;
    (void)handle, (void)level;
    events++;

    OK(MPI_T_event_read(instance, tag_of_elements, &tag));
    OK(MPI_T_event_read(instance, source_of_elements, &source));
    SAME(tag, 5);
    SAME(source, 0);
    /* A copy has each element where the type says, and writes nothing behind the last. */
    OK(MPI_T_event_get_info(index_of_type, NULL, NULL, NULL, datatypes, places, &num, NULL, NULL, NULL, NULL, NULL));
    memset(image, 0xee, sizeof image);
    OK(MPI_T_event_copy(instance, image));
    for (int e = 0; e < num; e++) {
        int size = datatypes[e] == MPI_INT || datatypes[e] == MPI_UINT32_T ? 4 : 8;
        memset(one, 0xaa, sizeof one);
        OK(MPI_T_event_read(instance, e, one));
        SAME(memcmp(one, image + places[e], size), 0);
        SAME(one[size], 0xaa);
        if (e == num - 1) SAME(image[places[e] + size], 0xee);
    }
    OK(MPI_T_event_get_timestamp(instance, &time));
    OK(MPI_T_event_get_source(instance, &number));
    OK(MPI_T_source_get_timestamp(number, &now));
    OK(MPI_T_event_get_timestamp(instance, &again));
    CHECK(time >= before && time == again && time <= now);
    before = time;
    MPI_T_source_order order;
    OK(MPI_T_source_get_info(number, NULL, NULL, NULL, NULL, &order, NULL, NULL, NULL));
    SAME(order, buffered ? MPI_T_SOURCE_UNORDERED : MPI_T_SOURCE_ORDERED);

    SAME(MPI_T_event_read(instance, -1, one), MPI_T_ERR_INVALID_INDEX);
    SAME(MPI_T_event_read(instance, elements, one), MPI_T_ERR_INVALID_INDEX);
    SAME(MPI_T_event_read(instance, 0, NULL), MPI_T_ERR_INVALID);
    SAME(MPI_T_event_copy(instance, NULL), MPI_T_ERR_INVALID);
    SAME(MPI_T_event_get_timestamp(instance, NULL), MPI_T_ERR_INVALID);
    SAME(MPI_T_event_get_source(instance, NULL), MPI_T_ERR_INVALID);
    SAME(MPI_T_event_read(NULL, 0, one), MPI_T_ERR_INVALID_HANDLE);
    SAME(MPI_T_event_read((MPI_T_event_instance)&number, 0, one), MPI_T_ERR_INVALID_HANDLE);
    if (events == 1) {
        pthread_t thread;
        pthread_create(&thread, NULL, on_another_thread, instance);
        pthread_join(thread, NULL);
    }
    kept = instance;
}

static void message_to_oneself(void)
{
    int out = 7, in = 0;
    MPI_Request request;
    OK(MPI_Irecv(&in, 1, MPI_INT, 0, 5, MPI_COMM_SELF, &request));
    OK(MPI_Send(&out, 1, MPI_INT, 0, 5, MPI_COMM_SELF));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
}

static void a_callback_reads(const char *name, const char *source, const char *tag, int entries)
{
    MPI_Comm self = MPI_COMM_SELF;
    int buffered = entries > 0;
    MPI_Count time;
    unsigned char data[256];
    index_of_type = type_of(name);
    source_of_elements = element_of(index_of_type, source);
    tag_of_elements = element_of(index_of_type, tag);
    elements = 32;
    OK(MPI_T_event_get_info(index_of_type, NULL, NULL, NULL, NULL, NULL, &elements, NULL, NULL, NULL, NULL, NULL));
    CHECK(elements > 0 && elements < 32);
    MPI_T_event_registration handle = listen_to(index_of_type, &self, entries, on_message, &buffered);
    events = 0;
    for (int i = 0; i < 3; i++) message_to_oneself();
    OK(MPI_T_event_handle_free(handle, NULL, NULL));
    SAME(events % 3, 0);
    /* The instance is gone with the call. */
    SAME(MPI_T_event_read(kept, 0, data), MPI_T_ERR_INVALID_HANDLE);
    SAME(MPI_T_event_copy(kept, data), MPI_T_ERR_INVALID_HANDLE);
    SAME(MPI_T_event_get_timestamp(kept, &time), MPI_T_ERR_INVALID_HANDLE);
    SAME(MPI_T_event_get_source(kept, &events), MPI_T_ERR_INVALID_HANDLE);
}

static void *ask_for_a_source(void *data)
{
    int *number = data;
    OK(MPI_T_source_get_num(number));
    return NULL;
}

static void sources_describe_themselves(void)
{
    int num = -1, more = -1;
    pthread_t thread;
    MPI_Count first, second;
    OK(MPI_T_source_get_num(&num));
    CHECK(num >= 2);
    for (int i = 0; i < num; i++) {
        char name[64], desc[512];
        int name_len = sizeof name, desc_len = sizeof desc, keys = -1;
        MPI_T_source_order order;
        MPI_Count ticks = 0, most = 0;
        MPI_Info info;
        OK(MPI_T_source_get_info(i, name, &name_len, desc, &desc_len, &order, &ticks, &most, &info));
        SAME(name_len, strlen(name) + 1);
        SAME(desc_len, strlen(desc) + 1);
        CHECK(ticks >= 1000000);
        CHECK(most > 1000000 * ticks);
        SAME(order, i == 0 ? MPI_T_SOURCE_UNORDERED : MPI_T_SOURCE_ORDERED);
        OK(MPI_Info_get_nkeys(info, &keys));
        SAME(keys, 0);
        OK(MPI_Info_free(&info));
        OK(MPI_T_source_get_timestamp(i, &first));
        OK(MPI_T_source_get_timestamp(i, &second));
        CHECK(first > 0 && second >= first && second <= most);
        name_len = 4;
        OK(MPI_T_source_get_info(i, name, &name_len, NULL, NULL, NULL, NULL, NULL, NULL));
        CHECK(strcmp(name, "per") == 0);
    }
    SAME(MPI_T_source_get_num(NULL), MPI_T_ERR_INVALID);
    SAME(MPI_T_source_get_info(-1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), MPI_T_ERR_INVALID_INDEX);
    SAME(MPI_T_source_get_info(num, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), MPI_T_ERR_INVALID_INDEX);
    SAME(MPI_T_source_get_timestamp(num, &first), MPI_T_ERR_INVALID_INDEX);
    SAME(MPI_T_source_get_timestamp(-1, &first), MPI_T_ERR_INVALID_INDEX);
    SAME(MPI_T_source_get_timestamp(0, NULL), MPI_T_ERR_INVALID);
    /* Another thread is another source; no source ever goes. */
    pthread_create(&thread, NULL, ask_for_a_source, &more);
    pthread_join(thread, NULL);
    CHECK(more > num);
    OK(MPI_T_source_get_num(&num));
    SAME(num, more);
}

/* A second of the clock is a second of MPI_Wtime. */
static void ticks_are_what_they_say(void)
{
    MPI_Count ticks = 0, from = 0, to = 0;
    OK(MPI_T_source_get_info(0, NULL, NULL, NULL, NULL, NULL, &ticks, NULL, NULL));
    /* Each look at this clock lies between two at the other one, however long the machine keeps us in between. */
    double before_first = MPI_Wtime();
    OK(MPI_T_source_get_timestamp(0, &from));
    double behind_first = MPI_Wtime(), before_last;
    while ((before_last = MPI_Wtime()) - behind_first < 0.2)
        ;
    OK(MPI_T_source_get_timestamp(0, &to));
    double behind_last = MPI_Wtime(), measured = (double)(to - from) / ticks;
    /* A percent is for the frequency. */
    CHECK(measured > (before_last - behind_first) * 0.99 && measured < (behind_last - before_first) * 1.01);
}

int main(int argc, char **argv)
{
    initialise_tools();
    OK(MPI_Init(&argc, &argv));
    sources_describe_themselves();
    ticks_are_what_they_say();
    for (int entries = 0; entries < 5; entries += 4) {
        before = 0;
        a_callback_reads("PERUSE_COMM_MSG_ARRIVED", "peer", "tag", entries);
        a_callback_reads("PERUSE_COMM_REQ_NOTIFY_all", "peer", "tag", 2 * entries);
        a_callback_reads("pml_ob1_message_arrived", "source", "tag", entries);
    }
    OK(MPI_Finalize());
    OK(MPI_T_finalize());
    return verdict();
}
