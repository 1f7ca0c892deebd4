/* SPDX-License-Identifier: MIT */
/*
 * Recovery: what a killed process had accepted and not written, as its arena tells
 * (cache/persist.h), goes to where it belongs. See recover.c.
 */
#ifndef SLUICE_FILE_RECOVER_H
#define SLUICE_FILE_RECOVER_H

#include "base/err.h"
#include "cache/persist.h"

enum recovered_how {
	RECOVERED_WRITTEN,
	RECOVERED_ASIDE,   /* into the recovery folder */
	RECOVERED_DROPPED, /* its last name was gone before */
	RECOVERED_MAX,
};

/* What became of one file's bytes. */
struct recovered {
	enum recovered_how how;
	u64 bytes;
	const char *path;
	const char *why;   /* RECOVERED_ASIDE, RECOVERED_DROPPED: in words */
	const char *where; /* RECOVERED_ASIDE: the file with the bytes */
};

struct recover_config {
	const char *folder;    /* for what cannot go to its file; "": PATH.recovered */
	bool set_aside_failed; /* also what a file will not take; else recovery fails then */
	void (*told)(void *ctx, const struct recovered *r); /* of each file; may be NULL */
	void *ctx;
};

/* Sums, by what became of it. */
struct recovery {
	u64 files[RECOVERED_MAX], bytes[RECOVERED_MAX];
};

/*
 * Sees to what the arena in `path` has, if there is one, and removes it. On an error, which `e`
 * tells, it is as it was, to be tried again: no byte of it is given up.
 */
int recover(const char *path, const struct recover_config *c, struct recovery *out, struct err *e);

/* --- in steps, and for others than files of the system's */

/* Where a file's bytes go to; each returns 0 or a negative errno, which ends it. In this order: */
struct recover_target {
	/* The file ends at `size` bytes, if it was longer. */
	int (*shrink)(struct recover_target *t, u64 size);
	/* There are zeros in the range. */
	int (*zero)(struct recover_target *t, u64 from, u64 to);
	/* Any number of these, ascending. */
	int (*write)(struct recover_target *t, u64 offset, const void *data, u64 length);
	/* The file has `size` bytes, if it was shorter. */
	int (*lengthen)(struct recover_target *t, u64 size);
};

/* The frames of which something is owed, by file and page. */
struct recover_plan {
	struct persist *p;
	u32 *frames;
	u64 count;
};

int recover_plan(struct persist *p, struct recover_plan *out); /* 0 or -ENOMEM */
void recover_plan_finish(struct recover_plan *plan);
/* Whether there is anything to do for a file. */
bool recover_is_due(const struct recover_plan *plan, u32 number);
/* Does it; the bytes written in *bytes. */
int recover_file(const struct recover_plan *plan, u32 number, struct recover_target *t, u64 *bytes);

/* recover_find.c: opens the file, and no other. -ENOENT: it is gone or was replaced; `why`. */
int recover_find(const struct persist_name *name, int *fd, const char **why);

/* recover_put.c: a file of the system's, open as fd. */
struct recover_to_file {
	struct recover_target target;
	int fd;
	bool regular;
};
void recover_to_file(struct recover_to_file *t, int fd);

/* A pair of files in the recovery folder: bytes at their offsets, and a list of where they are. */
struct recover_aside {
	struct recover_target target;
	int fd;
	char path[PATH_MAX + 64]; /* of the bytes */
	char list_path[PATH_MAX + 64];
	void *list; /* FILE */
};
int recover_aside_open(struct recover_aside *t, const struct persist *p, u32 number,
		       const char *folder, const char *why);
/* Makes them safe. 0 or the first error. */
int recover_aside_close(struct recover_aside *t);

/* survive.c */
void persist_name_life(struct persist_name *name, int fd);

#endif
