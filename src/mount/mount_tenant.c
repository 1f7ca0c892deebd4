// SPDX-License-Identifier: MIT
/*
 * Whose a call is: see rules.h. The parts of the answer come from three places, and live as long as
 * each of them is true. A file's path is looked at when the file is first used after an open,
 * and kept with that. The user comes with the call. The cgroup is asked of /proc by the number
 * of the calling thread, which costs some microseconds, so an answer is believed for 20 ms: a
 * caller may have been moved, or have ended and left its number to another. (The system gives
 * numbers out in turn, so within that time it would have to begin as many threads as there are
 * numbers.) Each serving thread keeps the answers that it got itself, without a lock.
 *
 * The pages of a shared mapping come from the kernel without a caller: they are his who opened the
 * file for writing.
 *
 * Rules may change while they are used. They are numbered by generations, and what was kept of an
 * older one is not believed.
 */
#include "base/bits.h"
#include "ledger/tenant.h"
#include "mount/mount_inner.h"
#include "writeback/waits.h"
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define CALLERS   64 /* kept by each thread; a power of two */
#define BELIEF_NS (20 * NSEC_PER_MSEC)

struct caller {
	u32 pid, generation;
	u64 at_ns; /* when it was asked */
	u64 met;   /* rules */
};

static _Thread_local struct caller callers[CALLERS];

/* --- what a call meets */

/* The cgroup of a thread, by its line "0::PATH"; false: it is gone, or there is no such line. */
static bool cgroup_of(u32 pid, char *path, size_t size)
{
	char name[32], *line = NULL;
	size_t room = 0;
	bool found = false;
	ssize_t n;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%u/cgroup", pid);
	f = fopen(name, "re");
	while (f && !found && (n = getline(&line, &room, f)) > 0) {
		found = !strncmp(line, "0::", 3);
		line[n - 1] = 0;
		if (found)
			snprintf(path, size, "%s", line + 3);
	}
	free(line);
	if (f)
		fclose(f);
	return found;
}

static bool knows_cgroups(void)
{
	char path[PATH_MAX];

	return cgroup_of((u32)getpid(), path, sizeof(path));
}

static u64 met_by_cgroup(const struct acting *a, u32 pid)
{
	struct caller *c = &callers[pid % CALLERS];
	u64 now = world_now();
	char path[PATH_MAX];

	if (c->pid == pid && c->generation == a->generation && now - c->at_ns < BELIEF_NS)
		return c->met;
	*c = (struct caller){ .pid = pid, .generation = a->generation, .at_ns = now };
	if (cgroup_of(pid, path, sizeof(path)))
		c->met = rules_met_by_path(&a->rules, RULE_CGROUP, path);
	return c->met;
}

static u64 met_by_caller(const struct acting *a, fuse_req_t req)
{
	const struct fuse_ctx *ctx = fuse_req_ctx(req);
	u64 met = rules_met_by_uid(&a->rules, ctx->uid);

	if (a->rules.of_kind[RULE_CGROUP] && ctx->pid)
		met |= met_by_cgroup(a, (u32)ctx->pid);
	return met;
}

static bool path_of(int fd, char path[PATH_MAX])
{
	char name[PROC_PATH_MAX];
	ssize_t n = readlink(proc_path(name, fd), path, PATH_MAX - 1);

	path[n > 0 ? n : 0] = 0;
	return n > 0;
}

static u64 met_by_node(const struct mount *m, const struct node *n)
{
	const struct acting *a = &m->acting;
	char source[PATH_MAX], path[PATH_MAX];
	size_t length;

	if (!a->rules.of_kind[RULE_PATH] || !path_of(m->source_fd, source) || !path_of(n->fd, path))
		return 0;
	length = source[1] ? strlen(source) : 0; /* "/" itself */
	return strncmp(path, source, length)
		       ? 0
		       : rules_met_by_path(&a->rules, RULE_PATH, path + length);
}

/* The same, kept with an open. Two threads that find it out at once find the same. */
static u64 met_by_handle(const struct mount *m, struct handle *h)
{
	u32 generation = m->acting.generation;

	if (atomic_load_explicit(&h->generation, memory_order_acquire) != generation) {
		atomic_store(&h->met, met_by_node(m, h->node));
		atomic_store_explicit(&h->generation, generation, memory_order_release);
	}
	return atomic_load(&h->met);
}

/* --- calls */

/* Of a call that has no caller: by who opened the file, as far as the rules are still those. */
static u64 met_by_opener(const struct acting *a, const struct handle *h)
{
	assert(h);
	return h->opener_generation == a->generation ? h->opener_met : 0;
}

void acting_opened(fuse_req_t req, struct handle *h)
{
	struct acting *a = &mount_of(req)->acting;

	if (likely(!atomic_load_explicit(&a->any, memory_order_acquire)))
		return;
	rwsem_lock_shared(&a->lock);
	h->opener_met = met_by_caller(a, req);
	h->opener_generation = a->generation;
	rwsem_unlock_shared(&a->lock);
}

void acting_begin(fuse_req_t req, struct node *n, struct handle *h, bool callerless)
{
	struct mount *m = mount_of(req);
	struct acting *a = &m->acting;
	u64 met, word = 0;
	int tenant;

	waits_act_for((u32)fuse_req_ctx(req)->pid);
	store_act_for(m->root_user ? fuse_req_ctx(req)->uid : 0); /* whose room it takes */
	if (likely(!atomic_load_explicit(&a->any, memory_order_acquire)))
		return;
	rwsem_lock_shared(&a->lock);
	met = h ? met_by_handle(m, h) : met_by_node(m, n);
	met |= callerless ? met_by_opener(a, h) : met_by_caller(a, req);
	tenant = rules_decide(&a->rules, met);
	if (tenant >= 0)
		word = tenant_word(a->tenant[tenant]);
	rwsem_unlock_shared(&a->lock);
	tenant_enter_word(word);
}

void acting_end(const struct mount *m)
{
	if (unlikely(atomic_load_explicit(&m->acting.any, memory_order_relaxed)))
		tenant_enter(NULL);
}

/* --- the tenants */

static int refuse(const char *name, int rc, struct err *e)
{
	err_set(e, NULL, 0, "tenant \"%s\": %s", name,
		rc == -ENOSPC ? "too many went away and still have dirty data" : strerror(-rc));
	return rc;
}

/* Makes it, or changes its figures. */
static int provide(struct mount *m, const struct rules_tenant *t, struct tenant **out,
		   struct err *e)
{
	struct engine *engine = m->cache->engine;
	int rc;

	*out = engine_tenant(engine, t->name);
	rc = *out ? engine_set_tenant(engine, *out, &t->settings)
		  : engine_add_tenant(engine, t->name, &t->settings, out);
	return rc ? refuse(t->name, rc, e) : 0;
}

int acting_check(const struct rules *r, struct err *e)
{
	if (r->of_kind[RULE_CGROUP] && !knows_cgroups())
		return err_set(e, NULL, 0,
			       "rules by cgroup need cgroups of version 2, which this system does "
			       "not have");
	return rules_check(r, e);
}

int acting_open(struct mount *m, struct rules *r, struct err *e)
{
	struct acting *a = &m->acting;
	int rc = 0;

	for (u32 i = 0; i < r->tenants && !rc; i++)
		rc = provide(m, &r->tenant[i], &a->tenant[i], e);
	if (rc)
		return rc;
	a->rules = *r;
	*r = (struct rules){ .count = 0 };
	a->generation = 1;
	atomic_store(&a->any, a->rules.count > 0);
	return 0;
}

/* --- changes */

/* What the rules will be after a change; and who is to be made, or to go. */
struct change {
	struct rules rules;
	struct tenant *tenant[RULES_TENANTS_MAX];
};

/* Makes those that are new, and changes the figures of those that have others now. */
static int provide_changed(struct mount *m, struct change *c)
{
	const struct acting *a = &m->acting;
	u32 i = 0;
	int rc = 0;

	for (; i < c->rules.tenants && !rc; i++) {
		const struct rules_tenant *new = &c->rules.tenant[i], *old = &a->rules.tenant[i];

		c->tenant[i] = a->tenant[i];
		if (i >= a->rules.tenants ||
		    memcmp(&new->settings, &old->settings, sizeof(new->settings)) != 0)
			rc = provide(m, new, &c->tenant[i], NULL);
	}
	if (rc) /* those after the old ones are new, but for the one that failed */
		while (--i > a->rules.tenants)
			engine_close_tenant(m->cache->engine, c->tenant[i - 1]);
	return rc;
}

static int tenants_change(struct mount *m, struct change *c, const char *list)
{
	int rc = rules_read_list(&c->rules, list, NULL);

	rc = rc ? rc : acting_check(&c->rules, NULL);
	return rc ? rc : provide_changed(m, c);
}

/* *gone: who is to be closed when nobody is found to be it any more. */
static int tenants_close(struct mount *m, struct change *c, const char *name, struct tenant **gone)
{
	int at = rules_tenant(&c->rules, name);

	if (at < 0)
		return -ENOENT;
	memcpy(c->tenant, m->acting.tenant, sizeof(c->tenant));
	*gone = c->tenant[at];
	rules_remove(&c->rules, (u32)at);
	memmove(c->tenant + at, c->tenant + at + 1,
		(c->rules.tenants - (u32)at) * sizeof(c->tenant[0]));
	return 0;
}

/* Puts what is new in place of what is, which is `c` after that. */
static void exchange(struct acting *a, struct change *c)
{
	struct rules old = a->rules;

	rwsem_lock(&a->lock);
	a->rules = c->rules;
	memcpy(a->tenant, c->tenant, sizeof(a->tenant));
	a->generation++;
	atomic_store(&a->any, a->rules.count > 0);
	rwsem_unlock(&a->lock);
	c->rules = old;
}

static int change(struct mount *m, const char *text, bool close)
{
	struct change *c = calloc(1, sizeof(*c));
	struct tenant *gone = NULL;
	int rc = -ENOMEM;

	if (!c)
		return rc;
	mutex_lock(&m->acting.changing);
	rc = rules_copy(&c->rules, &m->acting.rules);
	if (!rc)
		rc = close ? tenants_close(m, c, text, &gone) : tenants_change(m, c, text);
	if (!rc)
		exchange(&m->acting, c);
	if (gone)
		engine_close_tenant(m->cache->engine, gone);
	mutex_unlock(&m->acting.changing);
	rules_free(&c->rules);
	free(c);
	return rc;
}

bool acting_set(fuse_req_t req, const char *name, const char *value, size_t size, int *rc)
{
	bool close = !strcmp(name, MOUNT_END_NAME);
	uid_t uid = fuse_req_ctx(req)->uid;
	char *text;

	if (!close && strcmp(name, MOUNT_TENANTS_NAME) != 0)
		return false;
	*rc = -EPERM;
	if (uid && uid != geteuid())
		return true;
	text = strndup(value, size);
	*rc = text ? change(mount_of(req), text, close) : -ENOMEM;
	free(text);
	return true;
}

void acting_init(struct acting *a)
{
	mutex_init(&a->changing, RANK_NONE);
	rwsem_init(&a->lock, RANK_NONE);
}

void acting_free(struct acting *a)
{
	rules_free(&a->rules);
}
