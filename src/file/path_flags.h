/* SPDX-License-Identifier: MIT */
/* What the flags of an open mean to the table of paths, to the system, and to the engine. */
#ifndef SLUICE_FILE_PATH_FLAGS_H
#define SLUICE_FILE_PATH_FLAGS_H

#include <stdbool.h>
#include <sys/stat.h>

bool path_writes(int flags);
bool path_flags_known(int flags);
/* Opens without waiting for anybody (a FIFO would) and without changing what is there. */
int path_open_by_system(const char *path, int flags, mode_t mode);
/* 0 for what can be cached, with *st; or a negative errno. */
int path_check_kind(int fd, struct stat *st);
/* As file_open() takes them. */
unsigned path_file_flags(int flags);

#endif
