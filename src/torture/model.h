/* SPDX-License-Identifier: MIT */
/* What a file may hold: see model.c. */
#ifndef SLUICE_TORTURE_MODEL_H
#define SLUICE_TORTURE_MODEL_H

#include "base/types.h"

#define MODEL_NEVER (~0ull)

/* Bytes [from, to) of a file, set by one operation that took from `start` to `end`. */
struct version {
	u64 start, end; /* end: MODEL_NEVER while it is under way */
	u64 from, to;
	const u8 *bytes; /* NULL: zeros. They stay as long as the model */
	bool maybe;      /* an operation that failed: each byte was set or was not */
	bool safe;       /* it has said itself that it is on the disk */
	bool used;
};

/* Bytes that a model keeps itself. */
struct past {
	struct past *next;
	u8 bytes[];
};

struct model {
	u64 *clock; /* counts the beginnings and ends of all operations of a run */
	u64 capacity;
	u8 *base;                  /* older than all versions */
	u64 durable;               /* what ended before is on the disk */
	u64 size_least, size_most; /* sizes the file may have at the moment */
	u32 active;                /* operations under way that care */
	struct past *past;
	struct version *version;
	u32 count, room;
};

void model_init(struct model *m, u64 capacity, u64 *clock);
void model_finish(struct model *m);
u64 model_tick(struct model *m);
/*
 * The file is what its disk holds now: `base` on the media, and then each change since, that a
 * power loss may take, by model_past() (bytes NULL: zeros). Nothing is under way that sets bytes.
 */
void model_restart(struct model *m, const u8 *base);
void model_past(struct model *m, u64 from, u64 to, const u8 *bytes);
/* An operation begins to set a range; its number. */
u32 model_begin(struct model *m, u64 from, u64 to, const u8 *bytes);
/* It has ended, with [from, to) set. It may not have been set at all if `maybe`. */
void model_end(struct model *m, u32 number, u64 from, u64 to, bool maybe, bool safe);
/* An fsync that began at `start` has succeeded. */
void model_synced(struct model *m, u64 start);
/*
 * Whether a read of [offset, offset + n) from `start` to now may have given these bytes: n,
 * or the first that it may not. With `disk` what a disk holds is asked about.
 */
u64 model_allows(struct model *m, u64 offset, const u8 *bytes, u64 n, u64 start, bool disk);

/*
 * The same for the sectors (512 bytes) of what that has allowed: n, or where the first begins that
 * is made of bytes of different moments.
 */
u64 model_allows_sectors(struct model *m, u64 offset, const u8 *bytes, u64 n, u64 start);

#endif
