/* The forms of access to a file that every program of random accesses draws from. */
#ifndef FILE_FORMS_H
#define FILE_FORMS_H

#include "file.h"

enum { FORMS = 10 };

/* Whether all ranks take part in it. */
static inline int is_collective(int how) { return how == 2 || how == 3 || how > 5; }

/* An access at etype `at`: by the offset, or where the individual file pointer is put. */
static inline void access_file(MPI_File file, int how, int write, MPI_Offset at, void *buf, int count, MPI_Datatype type, MPI_Status *status)
{
    MPI_Request request;
    if (how % 2) OK(MPI_File_seek(file, at, MPI_SEEK_SET));
    switch (how) {
    case 0: OK(write ? MPI_File_write_at(file, at, buf, count, type, status) : MPI_File_read_at(file, at, buf, count, type, status)); break;
    case 1: OK(write ? MPI_File_write(file, buf, count, type, status) : MPI_File_read(file, buf, count, type, status)); break;
    case 2: OK(write ? MPI_File_write_at_all(file, at, buf, count, type, status) : MPI_File_read_at_all(file, at, buf, count, type, status)); break;
    case 3: OK(write ? MPI_File_write_all(file, buf, count, type, status) : MPI_File_read_all(file, buf, count, type, status)); break;
    case 4:
        OK(write ? MPI_File_iwrite_at(file, at, buf, count, type, &request) : MPI_File_iread_at(file, at, buf, count, type, &request));
        OK(MPI_Wait(&request, status));
        break;
    case 5:
        OK(write ? MPI_File_iwrite(file, buf, count, type, &request) : MPI_File_iread(file, buf, count, type, &request));
        OK(MPI_Wait(&request, status));
        break;
    case 6:
        OK(write ? MPI_File_write_at_all_begin(file, at, buf, count, type) : MPI_File_read_at_all_begin(file, at, buf, count, type));
        OK(write ? MPI_File_write_at_all_end(file, buf, status) : MPI_File_read_at_all_end(file, buf, status));
        break;
    case 7:
        OK(write ? MPI_File_write_all_begin(file, buf, count, type) : MPI_File_read_all_begin(file, buf, count, type));
        OK(write ? MPI_File_write_all_end(file, buf, status) : MPI_File_read_all_end(file, buf, status));
        break;
    case 8:
        OK(write ? MPI_File_iwrite_at_all(file, at, buf, count, type, &request) : MPI_File_iread_at_all(file, at, buf, count, type, &request));
        OK(MPI_Wait(&request, status));
        break;
    default:
        OK(write ? MPI_File_iwrite_all(file, buf, count, type, &request) : MPI_File_iread_all(file, buf, count, type, &request));
        OK(MPI_Wait(&request, status));
    }
}

#endif
