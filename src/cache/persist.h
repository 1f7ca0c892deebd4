/* SPDX-License-Identifier: MIT */
/*
 * The file in which an arena outlives its process: a header, a record for each page frame, the
 * frames themselves, and a table of the files whose pages they hold. See persist.c.
 */
#ifndef SLUICE_CACHE_PERSIST_H
#define SLUICE_CACHE_PERSIST_H

#include "base/err.h"
#include "base/types.h"
#include "world/lock.h"
#include <limits.h>

struct owed;

#define PERSIST_MAGIC   "SLUICE\x1a\x01"
#define PERSIST_VERSION 1

struct persist_header {
	char magic[8];
	u32 version, page_bytes;
	u32 frames, files_max;
	u64 owed_from, arena_at, files_at,
		end;                /* offsets of the parts; of the longest table's end */
	u32 owed_bytes, file_bytes; /* of a record, of an entry */
	char uuid[40], boot[40];    /* this arena's; of the running kernel */
	u32 check;                  /* of all above */
	/* may change: */
	_Atomic u32 files; /* entries of the table that have memory */
	_Atomic u32 pid;   /* of the process that has it, for messages */
};

enum persist_kind {
	PERSIST_FREE, /* no entry */
	PERSIST_FILE,
	PERSIST_BLOCK_DEVICE,
	PERSIST_STORE, /* a program's own: nobody but the program can find it */
};

/* What is being done to a file, to be done again in case we do not come to its end. */
enum persist_op {
	PERSIST_IDLE,
	PERSIST_SHRINK, /* it ends at op_from */
	PERSIST_ZERO,   /* [op_from, op_to) is zeros but for what is owed, and the size stays */
};

/* How a file is found again. */
struct persist_name {
	u32 kind;
	u32 block_bytes;
	u64 device, number; /* st_dev and st_ino; of a block device, st_rdev is its number */
	s64 born_ns;        /* when it was made; 0: the file system does not say */
	u32 handle_bytes;   /* 0: the file system has no handles */
	s32 handle_type;
	u8 handle[128];
	char path[PATH_MAX]; /* when it was opened; "" for a store */
};

struct persist_file {
	_Atomic u32 kind;  /* enum persist_kind; set last, and to PERSIST_FREE first */
	u32 check;         /* of the name */
	_Atomic u64 size;  /* as accepted */
	_Atomic u32 op;    /* enum persist_op; set after the next two */
	_Atomic u32 order; /* of the whole table: which was entered first */
	_Atomic u64 op_from, op_to;
	_Atomic u32 unlinked; /* by us: nobody will look for it */
	struct persist_name name;
};

struct persist {
	int fd; /* locked while it is open, for life; immutable as are the next seven */
	char *path;
	char *map; /* the whole file */
	u64 map_bytes;
	struct persist_header *header;
	struct owed *owed;
	char *arena;
	struct persist_file *files; /* entry 0 is not used */
	struct mutex lock;          /* protects the next three, and the making of entries */
	u32 *free;                  /* numbers of free entries */
	u32 free_count, order;
	_Atomic bool frozen;        /* persist_freeze() */
	void (*stepped)(void *ctx); /* a test's: after each store that recovery would see */
	void *ctx;
};

/*
 * Makes the file for an arena of so many frames, all of its memory at once; locked. There must be
 * none by that name; NULL: in memory, without a name. 0, or a negative errno and `e`.
 */
int persist_create(const char *path, u32 frames, struct persist **out, struct err *e);
/*
 * Opens one whose process is gone, to be read only; locked. -ENOENT: there is none; -EBUSY: it has
 * a living process; -EINVAL: it is no arena, or cannot be trusted.
 */
int persist_open(const char *path, struct persist **out, struct err *e);
/* The same of an image in memory, for tests: nothing is copied. */
int persist_open_image(char *image, u64 bytes, struct persist **out, struct err *e);
/* Lets go of it; with `remove` the file goes, too. */
void persist_close(struct persist *p, bool remove);

/* Enters a file; its number in *number, 1 or more. 0, -ENOSPC or -ENFILE. */
int persist_add(struct persist *p, const struct persist_name *name, u64 size, u32 *number);
/* Nothing is owed of it any more, and will not be. */
void persist_drop(struct persist *p, u32 number);

void persist_set_size(struct persist *p, u32 number, u64 size);
/* From here until persist_end() it counts as done. */
void persist_begin(struct persist *p, u32 number, enum persist_op op, u64 from, u64 to);
void persist_end(struct persist *p, u32 number);
void persist_set_unlinked(struct persist *p, u32 number);

/*
 * From now on nothing of it changes any more: what is owed at this moment stays so for the next one
 * that opens it, whatever becomes of the cache. persist_close() leaves the file.
 */
void persist_freeze(struct persist *p);

/* Whether an entry's name is as it was entered. */
bool persist_file_is_whole(const struct persist_file *f);

static inline void persist_stepped(struct persist *p)
{
	if (unlikely(p->stepped != NULL))
		p->stepped(p->ctx);
}

#endif
