/* SPDX-License-Identifier: MIT */
/* What the files of the library share. */
#ifndef SLUICE_LIB_INNER_H
#define SLUICE_LIB_INNER_H

#include "file/path.h"
#include "lib/config.h"
#include "lib/survival.h"
#include "sluice.h"
#include "writeback/wb.h"

struct sluice {
	struct world world; /* of its flushers: real, with the HZ that threads have by default */
	struct lib_config config;
	struct lib_survival survival;
	struct device *device;
	struct engine *engine;
	struct path_table *paths;
	_Atomic u64 files_open;
	struct mutex stores_lock; /* protects the list, opens of stores, and their last closes */
	struct list_node stores;
	struct mutex trace_lock; /* one at a time starts, stops or reads the trace */
};

/* A file over a caller's store. */
struct lib_store {
	struct sluice_store ops; /* all of this version, absent ones NULL */
	void *ctx;
	u64 size_bytes; /* at the first open */
	struct inode *inode;
	/* under the cache's stores_lock: */
	u32 opens;
	bool written_to;     /* it was opened for writing, once */
	_Atomic bool opened; /* the program has it: release() is due at the end */
	struct list_node link;
};

struct sluice_file {
	struct sluice *cache;
	struct file *file;
	struct lib_store *store; /* NULL: opened by a path */
};

/* Finds or makes the store of `ctx` and counts an open of it. store.c */
int lib_store_get(struct sluice *c, const struct sluice_store *ops, void *ctx, u64 size_bytes,
		  bool to_write, struct lib_store **out);
/* The store of an inode, or NULL: it has a path. With the stores_lock held. */
struct lib_store *lib_store_of(struct sluice *c, const struct inode *inode);
/* Undoes it, when the open came to nothing. */
void lib_store_put(struct sluice *c, struct lib_store *s);
/*
 * Closes a file of a store. The last close first makes the data safe, and gives the store back; if
 * that fails, with the error, nothing has happened.
 */
int lib_store_close(struct sluice_file *f);

/* Tells `lost` of all that is unwritten of a file: to be called while it exists. loss.c */
struct lib_losing {
	void (*lost)(void *ctx, const struct sluice_loss *loss);
	void *ctx;
	const struct lib_store *store; /* NULL: a file with a path */
};
void lib_tell_losses(const struct lib_losing *to, struct inode *inode, int error);
/* Forgets what is unwritten of it, and tells of just that. */
int lib_forget(const struct lib_losing *to, struct inode *inode);

/* A struct of an older or newer program, `size` bytes long, as one of ours. loss.c */
int lib_copy_struct(void *to, size_t to_size, const void *from, u64 size, u64 size_min);

#endif
