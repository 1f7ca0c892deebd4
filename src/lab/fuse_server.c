/* SPDX-License-Identifier: MIT */
/*
 * What a passthrough server does, as tasks of the simulated machine: each takes a request,
 * carries it out on a file of its own, and answers. A file of the FUSE file system has one file
 * behind it, found by its store. Where that is on another device, it is read and written through
 * the same page cache as everything else, so what a writer has written is in memory
 * twice, counts as dirty twice, and the server can be throttled in turn. Where the server keeps
 * files in its own memory (tmpfs), a page costs finding and copying it, in 4 KiB pages.
 *
 * Moving the data between the kernel and the server costs no copy with splice, and one without.
 */
#include "lab/fuse_server.h"
#include "base/bits.h"
#include "file/file.h"
#include <errno.h>
#include <stdlib.h>

struct twin {
	struct list_node link;
	const struct store *store; /* of the file on the FUSE file system */
	struct inode *inode;       /* behind it; NULL: in memory */
	struct file *file;
};

struct fuse_server {
	struct engine *engine;
	struct device *device;
	int backing;
	struct list_node twins;
	u32 threads;
	struct task *thread[];
};

static int twin_open(struct fuse_server *s, struct twin *t)
{
	int rc;

	if (s->backing < 0)
		return 0;
	rc = inode_create(s->engine, (u32)s->backing, PAGE_SIZE, &t->inode);
	if (rc)
		return rc;
	/* where the front's files were laid out, there are files behind them */
	rc = inode_lay_out(t->inode, store_size(t->store));
	rc = rc ? rc : file_open(t->inode, 0, &t->file);
	if (rc)
		inode_destroy(t->inode);
	return rc;
}

static struct twin *twin_of(struct fuse_server *s, const struct store *store, int *error)
{
	struct twin *t;

	*error = -ENOMEM;
	for (struct list_node *n = s->twins.next; n != &s->twins; n = n->next)
		if (list_entry(n, struct twin, link)->store == store)
			return list_entry(n, struct twin, link);
	t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->store = store;
	*error = twin_open(s, t);
	if (*error) {
		free(t);
		return NULL;
	}
	list_add_tail(&s->twins, &t->link);
	return t;
}

static void work_on_memory(const struct fuse_request *q)
{
	u64 pages = div_roundup(q->bytes, PAGE_SIZE);

	world_spend(COST_SYSCALL, 1);
	world_spend(COST_LOOKUP, pages);
	world_spend(COST_COPY, pages);
	world_breathe();
}

static int work_on_file(struct twin *t, const struct fuse_request *q)
{
	u64 done = 0;

	while (done < q->bytes) {
		ssize_t n = q->op == IO_WRITE ? file_pwrite(t->file, NULL, q->bytes - done,
							    q->offset_bytes + done)
					      : file_pread(t->file, NULL, q->bytes - done,
							   q->offset_bytes + done);

		if (n < 0)
			return (int)n;
		if (!n) /* past the end there are zeros */
			break;
		done += (u64)n;
	}
	return q->op == IO_FLUSH ? file_fsync(t->file, false) : 0;
}

static int serve(struct fuse_server *s, const struct fuse_request *q)
{
	struct twin *t;
	int error;

	world_spend(COST_SYSCALL, 2); /* reading the request, writing the answer */
	if (q->op == IO_ASK) {
		world_spend(COST_SYSCALL, 1);
		return 0;
	}
	if (!device_config(s->device)->splice)
		world_spend(COST_COPY, div_roundup(q->bytes, PAGE_SIZE));
	t = twin_of(s, q->store, &error);
	if (!t)
		return error;
	if (t->inode)
		return work_on_file(t, q);
	work_on_memory(q);
	return 0;
}

static void server_thread(void *arg)
{
	struct fuse_server *s = arg;
	struct fuse_request q;

	while (fuse_take(s->device, &q)) {
		int error = serve(s, &q);

		world_breathe();
		fuse_answer(s->device, &q, error);
	}
}

int fuse_server_start(struct engine *e, struct device *d, int backing, struct fuse_server **out)
{
	u32 threads = device_config(d)->threads;
	struct fuse_server *s = calloc(1, sizeof(*s) + threads * sizeof(s->thread[0]));

	if (!s)
		return -ENOMEM;
	*s = (struct fuse_server){ .engine = e, .device = d, .backing = backing };
	list_init(&s->twins);
	*out = s;
	for (; s->threads < threads; s->threads++) {
		s->thread[s->threads] = world_spawn("server", server_thread, s);
		if (!s->thread[s->threads])
			return -ENOMEM;
	}
	return 0;
}

void fuse_server_stop(struct fuse_server *s)
{
	fuse_stop(s->device);
	for (u32 i = 0; i < s->threads; i++)
		world_join(s->thread[i]);
	while (!list_empty(&s->twins)) {
		struct twin *t = list_entry(s->twins.next, struct twin, link);

		list_del(&t->link);
		if (t->file) {
			file_close(t->file);
			inode_destroy(t->inode);
		}
		free(t);
	}
	free(s);
}
