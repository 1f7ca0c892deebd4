// SPDX-License-Identifier: MIT
/* Opening, closing and giving up files. */
#include "lib/inner.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

/* What open(2) knows and a store can do. */
#define STORE_FLAGS                                                                               \
	(O_ACCMODE | O_TRUNC | O_APPEND | O_DSYNC | O_SYNC | O_DIRECT | O_CLOEXEC | O_LARGEFILE | \
	 O_NOATIME | O_NOCTTY | O_NONBLOCK)

static struct sluice_file *new_file(struct sluice *c)
{
	struct sluice_file *f = calloc(1, sizeof(*f));

	if (f)
		f->cache = c;
	return f;
}

int sluice_open(struct sluice *c, const char *path, int flags, mode_t mode,
		struct sluice_file **out)
{
	struct sluice_file *f = new_file(c);
	int rc;

	if (!f)
		return -ENOMEM;
	rc = path_open(c->paths, path, flags, mode, &f->file);
	if (rc) {
		free(f);
		return rc;
	}
	atomic_fetch_add(&c->files_open, 1);
	*out = f;
	return 0;
}

/* open(2)'s flags as those of a file. */
static unsigned file_flags(int flags)
{
	int access = flags & O_ACCMODE;

	return (access == O_RDONLY ? FILE_NO_WRITE : 0) | (access == O_WRONLY ? FILE_NO_READ : 0) |
	       (flags & O_APPEND ? FILE_APPEND : 0) | (flags & O_DIRECT ? FILE_DIRECT : 0) |
	       (flags & (O_DSYNC | O_SYNC) ? FILE_SYNC : 0);
}

static int open_file(struct sluice_file *f, int flags)
{
	int rc = file_open(f->store->inode, file_flags(flags), &f->file);

	if (!rc && flags & O_TRUNC && (flags & O_ACCMODE) != O_RDONLY) {
		rc = file_truncate(f->file, 0);
		if (rc)
			file_close(f->file);
	}
	return rc;
}

int sluice_open_store(struct sluice *c, const struct sluice_store *store, void *ctx, uint64_t size,
		      int flags, struct sluice_file **out)
{
	size_t known = offsetof(struct sluice_store, write); /* the least there must be */
	struct sluice_store ops;
	struct sluice_file *f;
	int rc = lib_copy_struct(&ops, sizeof(ops), store, store->size, known);

	if (rc || !ops.read || flags & ~STORE_FLAGS || (flags & O_ACCMODE) == O_ACCMODE)
		return -EINVAL;
	f = new_file(c);
	if (!f)
		return -ENOMEM;
	rc = lib_store_get(c, &ops, ctx, size, (flags & O_ACCMODE) != O_RDONLY, &f->store);
	if (!rc) {
		rc = open_file(f, flags);
		if (rc)
			lib_store_put(c, f->store);
		else
			atomic_store(&f->store->opened, true);
	}
	if (rc) {
		free(f);
		return rc;
	}
	atomic_fetch_add(&c->files_open, 1);
	*out = f;
	return 0;
}

static void free_file(struct sluice_file *f)
{
	atomic_fetch_sub(&f->cache->files_open, 1);
	free(f);
}

int sluice_close(struct sluice_file *f)
{
	int rc = 0;

	if (f->store)
		rc = lib_store_close(f);
	else
		path_close(f->file);
	if (!rc)
		free_file(f);
	return rc;
}

int sluice_discard(struct sluice_file *f, void (*lost)(void *ctx, const struct sluice_loss *loss),
		   void *ctx)
{
	const struct lib_losing losing = { .lost = lost, .ctx = ctx, .store = f->store };

	return lib_forget(&losing, file_inode(f->file));
}
