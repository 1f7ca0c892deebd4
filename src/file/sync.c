// SPDX-License-Identifier: MIT
/*
 * Making everything safe: sync of the whole engine, and the end of it, which says what is lost.
 *
 * A sync first has every flusher send all that is dirty, then waits for what each inode has in
 * flight and for a cut of it, then flushes what has taken something since its last flush:
 * simulated devices once each, real ones file by file, since that is what the system can do. An
 * inode is held in the list by a count of those who look at it, not by the list's lock, so that
 * files can be made and opened meanwhile; inode_destroy() waits for the count to go.
 *
 * A sync with progress runs as a task of its own, so that its caller can look at the ledgers
 * now and then, and leave. One that was left goes on; it is joined by the next sync with
 * progress that finds it done, or at the engine's end.
 */
#include "base/alloc.h"
#include "cache/persist.h"
#include "file/inner.h"
#include "writeback/tenant.h"
#include <errno.h>

#define PROGRESS_NS (20 * NSEC_PER_MSEC)

/* The inode after `last` in the list (NULL: the first), held; lets go of `last`. NULL: the end. */
struct inode *next_inode(struct engine *e, struct inode *last)
{
	struct list_node *n;
	struct inode *inode = NULL;

	mutex_lock(&e->inodes_lock);
	n = last ? last->all.next : e->inodes.next;
	if (n != &e->inodes) {
		inode = list_entry(n, struct inode, all);
		inode->walkers++;
	}
	if (last && !--last->walkers)
		cond_broadcast(&e->inodes_left);
	mutex_unlock(&e->inodes_lock);
	return inode;
}

/*
 * Waits for what an inode has in flight, and for a cut; 0 or its error, if anything failed since
 * `failures`.
 */
static int wait_inode(struct inode *inode, u64 failures)
{
	int error;

	inode_wait_pages(inode, 0, INDEX_MAX_PAGES - 1);
	inode_wait_cut(inode);
	spin_lock(&inode->m.tree_lock);
	error = atomic_load(&inode->m.cache->failures) != failures ? inode->m.error : 0;
	spin_unlock(&inode->m.tree_lock);
	return error;
}

/* Writes what the flushers have passed over. */
static int write_rest(struct engine *e)
{
	int error = 0;

	for (struct inode *inode = NULL; (inode = next_inode(e, inode));)
		if (ledger_level(&inode->m.ledger, LEVEL_DEBT)) {
			int rc = inode_sync_range(inode, 0, INDEX_MAX_PAGES - 1);

			error = error ? error : rc;
		}
	return error;
}

int engine_sync(struct engine *e)
{
	u64 failures = atomic_load(&e->cache.failures);
	u32 flushed = 0; /* devices, as bits */
	int error = 0;

	if (unlikely(!writeback_sync(&e->all)))
		error = write_rest(e);
	for (struct inode *inode = NULL; (inode = next_inode(e, inode));) {
		int rc = wait_inode(inode, failures);

		error = error ? error : rc;
	}
	for (struct inode *inode = NULL; (inode = next_inode(e, inode));) {
		bool alone = device_flushes_files(inode->wb->device);
		int rc;

		if (alone ? !atomic_load(&inode->unflushed) : flushed >> inode->wb->index & 1)
			continue;
		flushed |= 1u << inode->wb->index;
		rc = inode_flush_device(inode);
		error = error ? error : rc;
	}
	return error;
}

/* --- with progress */

struct syncer {
	struct engine *engine;
	struct task *task;
	struct completion done;
	int error;
	struct list_node link; /* of the engine's syncers that were left; under its inodes_lock */
};

static void run_syncer(void *arg)
{
	struct syncer *s = arg;

	s->error = engine_sync(s->engine);
	completion_done(&s->done);
}

static void join_syncer(struct syncer *s)
{
	world_join(s->task);
	free(s);
}

/* Joins those that were left and are done; with `wait` all. */
static void join_syncers(struct engine *e, bool wait)
{
	struct list_node *n, *next;
	struct list_node done;

	list_init(&done);
	mutex_lock(&e->inodes_lock);
	list_for_each_safe (n, next, &e->syncers) {
		struct syncer *s = list_entry(n, struct syncer, link);

		if (wait || completion_is_done(&s->done)) {
			list_del(&s->link);
			list_add_tail(&done, &s->link);
		}
	}
	mutex_unlock(&e->inodes_lock);
	while (!list_empty(&done)) {
		struct syncer *s = list_entry(done.next, struct syncer, link);

		list_del(&s->link);
		join_syncer(s);
	}
}

static u64 pages_left(const struct engine *e)
{
	return ledger_level(&e->cache.ledger, LEVEL_DEBT) +
	       ledger_level(&e->cache.ledger, LEVEL_IN_FLIGHT);
}

int engine_sync_progress(struct engine *e, int (*progress)(void *ctx, u64 pages), void *ctx)
{
	struct syncer *s;
	int rc;

	join_syncers(e, false);
	s = alloc_zeroed(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->engine = e;
	completion_init(&s->done);
	list_init(&s->link);
	s->task = world_spawn_in(e->all.world, "sync", run_syncer, s);
	if (!s->task) {
		free(s);
		return -ENOMEM;
	}
	do
		rc = progress(ctx, pages_left(e));
	while (!rc && completion_wait_until(&s->done, world_now() + PROGRESS_NS));
	if (rc) {
		mutex_lock(&e->inodes_lock);
		list_add_tail(&e->syncers, &s->link);
		mutex_unlock(&e->inodes_lock);
		return rc;
	}
	rc = s->error;
	join_syncer(s);
	progress(ctx, pages_left(e));
	return rc;
}

/* --- the end */

/* Enters what of an inode is not on its device into the losses, if there are any to be told. */
static void tell_loss(struct inode *inode, u64 bytes, int error, struct engine_losses *losses)
{
	if (inode->m.persist_file) /* the next one may be luckier */
		persist_freeze(inode->m.cache->config.persist);
	if (!losses)
		return;
	losses->files++;
	losses->bytes += bytes;
	losses->error = losses->error ? losses->error : error;
	if (losses->lost)
		losses->lost(losses->ctx, inode, bytes, error);
}

int inode_end(struct inode *inode, int error, struct engine_losses *losses)
{
	u64 bytes;
	int first;

	/* what is being tried again is not dirty meanwhile, and may be safe in the end */
	inode_detach(inode);
	inode_wait_pages(inode, 0, INDEX_MAX_PAGES - 1);
	inode_wait_landings(inode);
	bytes = inode_unwritten_bytes(inode);
	first = inode_error(inode);
	if (bytes) {
		error = first ? first : error ? error : -EIO;
		tell_loss(inode, bytes, error, losses);
	} else if (error && inode_policy(inode)->errors == ERRORS_KEEP) {
		error = atomic_load(&inode->unflushed) ? inode_flush_device(inode) : 0;
	}
	if (losses && !losses->error)
		losses->error = error;
	return error;
}

/* Ends all flushers, waits for what is still in flight, and frees the devices' state. */
static void stop_flushers(struct engine *e)
{
	for (u32 i = 0; i < e->all.count; i++)
		wb_stop(e->all.wb[i]);
	cache_io_wait(&e->cache);
	while (e->all.count) {
		struct wb *wb = e->all.wb[e->all.count - 1];

		engine_tell_memory(e, wb->device, true);
		wb_destroy(wb);
	}
}

int engine_destroy_telling(struct engine *e, struct engine_losses *losses)
{
	int synced, error = 0;

	join_syncers(e, true);
	synced = engine_sync(e);
	while (!list_empty(&e->inodes)) {
		struct inode *inode = list_entry(e->inodes.next, struct inode, all);
		int rc = inode_end(inode, synced, losses);

		error = error ? error : rc;
		inode_destroy(inode);
	}
	stop_flushers(e);
	writeback_finish(&e->all);
	assert(!atomic_load(&e->lent_pages));
	cache_finish(&e->cache);
	free(e);
	return error;
}

int engine_destroy(struct engine *e)
{
	return engine_destroy_telling(e, NULL);
}

void engine_discard(struct engine *e)
{
	join_syncers(e, true);
	stop_flushers(e);
	while (!list_empty(&e->inodes)) {
		struct inode *inode = list_entry(e->inodes.next, struct inode, all);

		list_del(&inode->all);
		mapping_discard(&inode->m);
		store_destroy(inode->m.store);
		stakes_discard(inode);
		free(inode);
	}
	writeback_finish(&e->all);
	cache_discard(&e->cache);
	free(e);
}
