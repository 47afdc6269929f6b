/* What MPI_Error_string says of the error classes of the tools interface:
 * what was wrong, and what to do where something can be done. */
#include "check.h"

static const struct { int class; const char *part; } texts[] = {
    {MPI_T_ERR_NOT_INITIALIZED, "MPI_T_init_thread"},
    {MPI_T_ERR_CANNOT_INIT, "MPI_T_finalize"},
    {MPI_T_ERR_INVALID, "NULL"},
    {MPI_T_ERR_INVALID_INDEX, "index"},
    {MPI_T_ERR_INVALID_ITEM, "item"},
    {MPI_T_ERR_INVALID_SESSION, "has been freed"},
    {MPI_T_ERR_INVALID_HANDLE, "has been freed"},
    {MPI_T_ERR_INVALID_NAME, "has this name"},
    {MPI_T_ERR_OUT_OF_HANDLES, "free some"},
    {MPI_T_ERR_OUT_OF_SESSIONS, "free some"},
    {MPI_T_ERR_CVAR_SET_NOT_NOW, "later"},
    {MPI_T_ERR_CVAR_SET_NEVER, "before MPI_Init"},
    {MPI_T_ERR_PVAR_NO_WRITE, "read-only"},
    {MPI_T_ERR_PVAR_NO_STARTSTOP, "continuous"},
    {MPI_T_ERR_PVAR_NO_ATOMIC, "MPI_T_pvar_reset"},
};

int main(void)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;
    OK(MPI_Init(NULL, NULL));
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        OK(MPI_Error_string(texts[i].class, text, &length));
        SAME(length, strlen(text));
        if (strstr(text, texts[i].part) == NULL) fprintf(stderr, "class %d: %s\n", texts[i].class, text), failures++;
    }
    OK(MPI_Finalize());
    return verdict();
}
