/* SPDX-License-Identifier: MIT */
/*
 * A journal gathers the inodes that changed into transactions, numbered from 1. One is
 * running: a change enters the running transaction, and its first change says when it will be
 * committed at the latest. A commit makes the next one running, then writes the log record
 * of the old one, as long as the table of fs.c says; then all transactions up to it are safe.
 * Commits do not overlap: who comes while one is under way waits, and may find that it has made
 * safe what he wanted too.
 *
 * No contents are kept, only what the device gets to do: the simulated world needs no more.
 */
#include "writeback/journal.h"
#include <errno.h>
#include <stdlib.h>

#define LOG_BYTES (64ull << 20) /* the log's place on the device, written round and round */

struct journal {
	const struct fs *fs; /* immutable, as is device */
	struct device *device;
	struct store *store;
	struct task *task;   /* NULL: only fsync commits */
	struct mutex commit; /* protects committing, and `head` */
	u64 head;            /* bytes into the log */

	_Atomic u64 running;   /* transaction that takes changes */
	_Atomic u64 committed; /* newest transaction that is safe */
	_Atomic u64 inodes;    /* that the running one has changed */
	_Atomic u64 due_ns;    /* when it is committed; WORLD_NEVER */
	_Atomic u32 wakeups;   /* the task parks on it */
	_Atomic u32 stopping;
};

static void journal_wake(struct journal *j)
{
	atomic_fetch_add(&j->wakeups, 1);
	world_unpark(&j->wakeups, 1);
}

void journal_note(struct journal *j, struct inode *inode, bool grows)
{
	u64 tid = atomic_load_explicit(&j->running, memory_order_relaxed);

	if (grows)
		atomic_store_explicit(&inode->grown_tid, tid, memory_order_relaxed);
	if (atomic_load_explicit(&inode->changed_tid, memory_order_relaxed) == tid)
		return;
	atomic_store_explicit(&inode->changed_tid, tid, memory_order_relaxed);
	if (atomic_fetch_add(&j->inodes, 1) || !j->task)
		return;
	atomic_store(&j->due_ns, world_now() + (u64)j->fs->commit_ms * NSEC_PER_MSEC);
	journal_wake(j);
}

u64 journal_owed(struct journal *j, const struct inode *inode, bool data_only)
{
	u64 tid = atomic_load(data_only ? &inode->grown_tid : &inode->changed_tid);

	return tid > atomic_load(&j->committed) ? tid : 0;
}

static int journal_flush(struct journal *j)
{
	struct io io = { .store = j->store, .op = IO_FLUSH };

	return device_submit_wait(j->device, &io);
}

/* Writes so many bytes at the head of the log. Commit lock held. */
static int journal_write(struct journal *j, u32 bytes)
{
	struct io io = { .store = j->store, .length_bytes = bytes, .op = IO_WRITE, .sync = true };

	if (j->head + bytes > LOG_BYTES)
		j->head = 0;
	io.offset_bytes = j->head;
	j->head += bytes;
	return device_submit_wait(j->device, &io);
}

/* One log record, for so many changed inodes. */
static int journal_write_record(struct journal *j, u64 inodes)
{
	const struct fs *fs = j->fs;
	u64 blocks = fs->inodes_a_block ? inodes / fs->inodes_a_block : 0;
	u32 bytes = fs->log_bytes + (u32)blocks * fs->log_block_bytes;
	int rc = fs->seal_bytes ? journal_write(j, bytes) : 0;

	if (!rc)
		rc = journal_flush(j);
	if (!rc) /* what says that all of it is there */
		rc = journal_write(j, fs->seal_bytes ? fs->seal_bytes : bytes);
	return rc ? rc : journal_flush(j);
}

int journal_commit(struct journal *j, u64 tid)
{
	u64 running, inodes;
	int rc = 0;

	mutex_lock(&j->commit);
	if (atomic_load(&j->committed) < tid) {
		running = atomic_load(&j->running);
		assert(running >= tid && running == atomic_load(&j->committed) + 1);
		atomic_store(&j->due_ns, WORLD_NEVER);
		inodes = atomic_exchange(&j->inodes, 0);
		atomic_store(&j->running, running + 1);
		rc = journal_write_record(j, inodes);
		atomic_store(&j->committed, running); /* or lost: as the error says */
	}
	mutex_unlock(&j->commit);
	return rc;
}

int journal_sync(struct journal *j)
{
	if (!atomic_load(&j->inodes))
		return journal_flush(j);
	return journal_commit(j, atomic_load(&j->running));
}

static void journal_run(void *arg)
{
	struct journal *j = arg;

	for (;;) {
		u32 seen = atomic_load(&j->wakeups);
		u64 due = atomic_load(&j->due_ns);

		if (atomic_load(&j->stopping))
			return;
		if (due != WORLD_NEVER && world_now() >= due)
			journal_commit(
				j,
				atomic_load(&j->running)); /* an error is that of whoever syncs */
		else
			world_park(&j->wakeups, seen, due);
	}
}

int journal_create(struct device *device, const struct fs *fs, struct journal **out)
{
	struct journal *j;
	int rc;

	*out = NULL;
	if (!fs->log_bytes)
		return 0;
	j = calloc(1, sizeof(*j));
	if (!j)
		return -ENOMEM;
	j->fs = fs;
	j->device = device;
	j->due_ns = WORLD_NEVER;
	j->running = 1;
	mutex_init(&j->commit, RANK_JOURNAL);
	rc = store_create(device, false, &j->store);
	if (!rc && fs->commit_ms) {
		j->task = world_spawn("journal", journal_run, j);
		rc = j->task ? 0 : -ENOMEM;
	}
	if (rc) {
		if (j->store)
			store_destroy(j->store);
		free(j);
		return rc;
	}
	*out = j;
	return 0;
}

void journal_stop(struct journal *j)
{
	if (!j->task)
		return;
	atomic_store(&j->stopping, 1);
	journal_wake(j);
	world_join(j->task);
}

void journal_destroy(struct journal *j)
{
	store_destroy(j->store);
	free(j);
}
