/* SPDX-License-Identifier: MIT */
/* Checking what a clone wrote. Inside src/job/ only. */
#ifndef SLUICE_JOB_VERIFY_H
#define SLUICE_JOB_VERIFY_H

#include "job/clone.h"

#define VERIFY_ANY (~0ull) /* of whichever write */

/* True if the clone's blocks are to be checked: it says so, and contents are real. */
bool verify_wanted(const struct clone *c);
/* What to write. */
void verify_fill(const struct clone *c, const struct io *io, u8 *buffer);
/* 0, or -EILSEQ with `e` set: of the write with this number, or of any. */
int verify_check(const struct clone *c, const struct clone_file *f, const u8 *buffer, u64 offset,
		 u64 length, u64 sequence, struct err *e);
/* A block differs: notes it, and ends the clone if verify_fatal says so. */
void verify_failed(struct clone *c, int error, const char *why);
/* The clone is done: differences are its error. */
void verify_end(struct clone *c);
/* A block was written, and will be read back. */
void verify_remember(struct clone *c, const struct io *io);
/* Reads back some of what was written if so much has come together. `buffer`: for one block. */
void verify_backlog(struct clone *c, u8 *buffer);
/* Reads back all that is left. */
void verify_written(struct clone *c);
/* Does so when a pass is over. True if there is another, which then begins. */
bool verify_pass(struct clone *c);

#endif
