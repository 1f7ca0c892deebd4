/* SPDX-License-Identifier: MIT */
/*
 * Many tasks at one small cache, in either world: writers, readers, truncation, punched holes,
 * syncs, dropped caches. See stress.c for how what is read is judged.
 */
#ifndef SLUICE_TESTS_FILE_STRESS_H
#define SLUICE_TESTS_FILE_STRESS_H

#include "file/file.h"

struct stress {
	const char *policy;
	const char *device; /* model */
	u64 memory_bytes;
	u32 block_bytes;   /* of the files */
	u32 files, blocks; /* how many, and blocks of 4 KiB in each */
	u32 writers, readers, wreckers, syncers;
	u32 steps; /* of each task */
	u64 seed;
};

/* Runs it to its end in the world of the caller; fails the test if anything is wrong. */
void stress_run(const struct stress *s);

#endif
