/* SPDX-License-Identifier: MIT */
/* Files that people wrote and we read: opening them never waits for somebody. */
#ifndef SLUICE_BASE_INFILE_H
#define SLUICE_BASE_INFILE_H

#define INFILE_NOT_REGULAR "not a regular file"

/*
 * Opens a file to read: a descriptor, or a negative errno. -ENXIO is what it says of a thing that
 * is no regular file, such as a named pipe, in which there may never be anything to read; but what
 * a shell hands over as /dev/stdin or /dev/fd/N, as by <(...), is taken as it is.
 */
int infile_open(const char *path);
/* strerror() of an error of infile_open() and of reading. */
const char *infile_error(int error);

#endif
