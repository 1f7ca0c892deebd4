// SPDX-License-Identifier: MIT
/*
 * Lives: a run in which the power goes, or the process is killed, goes on. A life is a process of
 * its own, so that it can end at any instant, in the middle of everything, as processes do. At its
 * end it leaves in shared memory what is on the disks and how far each task had come; the next
 * life begins with that: a new world, a new engine over the old disks, models that know what
 * the disks have and what of it a power loss may still take, and the rest of the schedule.
 *
 * What an engine itself keeps over the death of its process is taken up before it is made anew
 * (outlive.c), and before the models are made of what the files then hold on disk.
 */
#include "base/bits.h"
#include "torture/child.h"
#include "torture/inner.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define STATUS_NEXT   77 /* of a life after which another one begins */
#define CHANGES_BYTES (2u << 20)

struct afterlife {
	u32 lives; /* that have ended */
	u64 clock;
	u32 next[TASKS_MAX + 1];
	u64 used;
	struct disk_saved file[FILES_MAX];
	struct legacy *legacy;   /* NULL: its memory ends with a process */
	u8 bytes[CHANGES_BYTES]; /* of changes */
};

bool life_after(const struct torture *t)
{
	return t->after && t->after->lives;
}

u32 life_number(const struct torture *t)
{
	return t->after ? t->after->lives : 0;
}

u32 life_next_op(const struct torture *t, u32 task)
{
	return t->after ? t->after->next[task] : 0;
}

void life_check_size(struct torture *t, const struct tfile *f, u64 size)
{
	u64 unit = f->kind == DISK_BLOCKS ? PAGE_SIZE : 1; /* whole folios may be written */

	if (t->lossy || (size >= f->safe_least && size <= round_up(f->safe_most, unit)))
		return;
	torture_fail(t, "file %u would come back %llu bytes long, not from %llu to %llu", f->number,
		     (unsigned long long)size, (unsigned long long)f->safe_least,
		     (unsigned long long)f->safe_most);
}

static void __attribute__((noreturn)) end_for_next(struct afterlife *a)
{
	a->lives++;
	fflush(NULL);
	_exit(STATUS_NEXT);
}

void life_end(struct torture *t, bool killed)
{
	struct afterlife *a = t->after;

	a->used = 0;
	for (u32 i = 0; i < t->files; i++) {
		struct tfile *f = &t->file[i];
		struct store *store = inode_store(f->inode);

		life_check_size(t, f, store_size(store));
		if (!killed)
			faults_look(t, f, false); /* leaves the image that it has looked at */
		disk_save(store, killed ? NULL : t->image, &a->file[i], a->bytes, &a->used,
			  sizeof(a->bytes));
	}
	if (a->legacy && killed)
		outlive_leave(t, a->legacy, a->file);
	else if (a->legacy)
		outlive_lose(a->legacy);
	for (u32 i = 0; i <= t->tasks; i++)
		a->next[i] = t->task[i].next;
	a->clock = t->clock;
	end_for_next(a);
}

void life_end_unborn(struct torture *t)
{
	struct afterlife *a = t->after;

	a->used = 0;
	for (u32 i = 0; i < t->files; i++)
		disk_save(t->file[i].store, NULL, &a->file[i], a->bytes, &a->used,
			  sizeof(a->bytes));
	end_for_next(a);
}

void life_recover(struct torture *t)
{
	if (t->after && t->after->legacy)
		outlive_recover(t, t->after->legacy);
}

static void enter_nothing(void *ctx, u64 from, u64 to, const u8 *bytes)
{
	(void)ctx;
	(void)from;
	(void)to;
	(void)bytes;
}

static void enter_change(void *ctx, u64 from, u64 to, const u8 *bytes)
{
	struct model *m = ctx;

	from = min_u64(from, m->capacity);
	to = min_u64(to, m->capacity);
	if (from < to)
		model_past(m, from, to, bytes);
}

void life_model(struct torture *t, struct tfile *f)
{
	struct store *store = inode_store(f->inode);
	u64 size = inode_size(f->inode);
	u8 *media = malloc(DISK_BYTES_MAX);

	if (!media)
		abort();
	disk_past(store, media, enter_nothing, NULL);
	model_restart(&f->model, media);
	disk_past(store, media, enter_change, &f->model);
	free(media);
	op_set_size(t, f, size, size);
	f->safe_least = f->safe_most = size;
}

void life_restore(struct torture *t, struct tfile *f, struct store *store)
{
	if (life_after(t))
		disk_restore(store, &t->after->file[f->number], t->after->bytes);
}

/* --- the process that has them all */

static bool has_ends(const struct torture *t)
{
	for (u32 i = 0; i < t->config->steps; i++)
		if ((t->op[i].kind == OP_CRASH || t->op[i].kind == OP_KILL) &&
		    (!t->config->keep || t->config->keep[i]))
			return true;
	return false;
}

/* Ends as the life did. */
static void end_likewise(int status)
{
	if (WIFSIGNALED(status)) {
		signal(WTERMSIG(status), SIG_DFL);
		kill(getpid(), WTERMSIG(status));
	}
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

static void live_again_and_again(struct torture *t, void (*live)(struct torture *t))
{
	int status = 0;

	do {
		pid_t pid;

		fflush(NULL);
		pid = fork();
		if (pid < 0)
			abort();
		if (!pid) {
			child_limit_cpu();
			t->clock = t->after->clock;
			live(t);
			fflush(NULL);
			exit(0);
		}
		while (waitpid(pid, &status, 0) < 0)
			;
	} while (WIFEXITED(status) && WEXITSTATUS(status) == STATUS_NEXT);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		end_likewise(status);
}

void life_all(struct torture *t, void (*live)(struct torture *t))
{
	if (!has_ends(t)) {
		live(t);
		return;
	}
	t->after = child_share(sizeof(*t->after));
	if (!t->after)
		abort();
	if (t->persists)
		t->after->legacy = outlive_share();
	live_again_and_again(t, live);
	if (t->after->legacy)
		outlive_unshare(t->after->legacy);
	child_unshare(t->after, sizeof(*t->after));
}
