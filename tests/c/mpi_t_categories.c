/* Categories are a tree: every variable and event hangs in one branch, and every branch but the root in another.
 */
#include "check.h"

int main(void) {
    int provided, num, cvars, pvars, stamp, again, roots = 0;
    int seen_cvars[1024] = {0}, seen_pvars[1024] = {0}, parents[1024] = {0}, list[1024];
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    OK(MPI_T_category_changed(&stamp));
    OK(MPI_T_category_get_num(&num));
    OK(MPI_T_cvar_get_num(&cvars));
    OK(MPI_T_pvar_get_num(&pvars));
    CHECK(num > 5 && num < 1024 && cvars < 1024 && pvars < 1024);
    for (int i = 0; i < num; i++) {
        char name[128];
        int len = sizeof name, n_cvars = -1, n_pvars = -1, n_cats = -1, index = -1, n_events = -1;
        OK(MPI_T_category_get_info(i, name, &len, NULL, NULL, &n_cvars, &n_pvars, &n_cats));
        OK(MPI_T_category_get_info(i, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
        OK(MPI_T_category_get_index(name, &index));
        SAME(index, i);
        for (int j = 0; j < 1024; j++) list[j] = -7;
        OK(MPI_T_category_get_cvars(i, 1024, list));
        for (int j = 0; j < n_cvars; j++) seen_cvars[list[j]]++;
        SAME(list[n_cvars], -7);
        if (n_cvars > 0) {
            /* Less room: some of them, and nothing behind. */
            list[n_cvars - 1] = -9;
            OK(MPI_T_category_get_cvars(i, n_cvars - 1, list));
            SAME(list[n_cvars - 1], -9);
        }
        for (int j = 0; j < 1024; j++) list[j] = -7;
        OK(MPI_T_category_get_pvars(i, 1024, list));
        for (int j = 0; j < n_pvars; j++) seen_pvars[list[j]]++;
        SAME(list[n_pvars], -7);
        for (int j = 0; j < 1024; j++) list[j] = -7;
        OK(MPI_T_category_get_categories(i, 1024, list));
        for (int j = 0; j < n_cats; j++) parents[list[j]]++;
        SAME(list[n_cats], -7);
        OK(MPI_T_category_get_num_events(i, &n_events));
        CHECK(n_events >= 0);
        for (int j = 0; j < 1024; j++) list[j] = -7;
        OK(MPI_T_category_get_events(i, 1024, list));
        SAME(list[n_events], -7);
        OK(MPI_T_category_get_cvars(i, 0, NULL));
        SAME(MPI_T_category_get_cvars(i, 1, NULL), MPI_T_ERR_INVALID);
        SAME(MPI_T_category_get_pvars(i, -1, list), MPI_T_ERR_INVALID);
        SAME(MPI_T_category_get_categories(i, -1, list), MPI_T_ERR_INVALID);
        SAME(MPI_T_category_get_events(i, -1, list), MPI_T_ERR_INVALID);
    }
    for (int i = 0; i < cvars; i++) SAME(seen_cvars[i], 1);
    for (int i = 0; i < pvars; i++) SAME(seen_pvars[i], 1);
    for (int i = 0; i < num; i++) {
        CHECK(parents[i] <= 1);
        roots += parents[i] == 0;
    }
    SAME(roots, 1);
    for (int i = -1; i <= num; i += num + 1) {
        SAME(MPI_T_category_get_info(i, NULL, NULL, NULL, NULL, NULL, NULL, NULL), MPI_T_ERR_INVALID_INDEX);
        SAME(MPI_T_category_get_cvars(i, 1, list), MPI_T_ERR_INVALID_INDEX);
        SAME(MPI_T_category_get_pvars(i, 1, list), MPI_T_ERR_INVALID_INDEX);
        SAME(MPI_T_category_get_categories(i, 1, list), MPI_T_ERR_INVALID_INDEX);
        SAME(MPI_T_category_get_events(i, 1, list), MPI_T_ERR_INVALID_INDEX);
        SAME(MPI_T_category_get_num_events(i, list), MPI_T_ERR_INVALID_INDEX);
    }
    SAME(MPI_T_category_get_num(NULL), MPI_T_ERR_INVALID);
    SAME(MPI_T_category_get_num_events(0, NULL), MPI_T_ERR_INVALID);
    SAME(MPI_T_category_get_index("nowhere", list), MPI_T_ERR_INVALID_NAME);
    SAME(MPI_T_category_get_index(NULL, list), MPI_T_ERR_INVALID);
    SAME(MPI_T_category_get_index("queues", NULL), MPI_T_ERR_INVALID);
    SAME(MPI_T_category_changed(NULL), MPI_T_ERR_INVALID);
    OK(MPI_T_category_changed(&again));
    SAME(again, stamp);
    OK(MPI_T_finalize());
    return verdict();
}
