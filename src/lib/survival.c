// SPDX-License-Identifier: MIT
/*
 * An arena that survives its process, from the side of who makes caches: recovery comes first, and
 * only when all of it has succeeded there is a new arena and a cache. What became of each file's
 * bytes is kept in a list, to be told to whoever asks.
 */
#include "lib/survival.h"
#include "lib/inner.h"
#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct lib_recovered {
	struct lib_recovered *next;
	struct recovered report;
	char text[]; /* that it points to */
};

/* Puts a text behind those that are there; NULL stays NULL. */
static const char *keep(char **at, const char *text)
{
	const char *kept = *at;

	if (!text)
		return NULL;
	*at = stpcpy(*at, text) + 1;
	return kept;
}

static size_t length(const char *text)
{
	return text ? strlen(text) + 1 : 0;
}

/* Without memory one line of the report is missing; the sums are right. */
static void note(void *ctx, const struct recovered *r)
{
	struct lib_survival *s = ctx;
	struct lib_recovered *one =
		malloc(sizeof(*one) + length(r->path) + length(r->why) + length(r->where));
	char *at;

	if (!one)
		return;
	at = one->text;
	one->report = *r;
	one->report.path = keep(&at, r->path);
	one->report.why = keep(&at, r->why);
	one->report.where = keep(&at, r->where);
	one->next = NULL;
	*s->last = one;
	s->last = &one->next;
}

/* The path, whatever the working directory will be. 0 or a negative errno. */
static int absolute(char path[PATH_MAX])
{
	char folder[PATH_MAX], whole[PATH_MAX], name[PATH_MAX];

	strcpy(folder, path);
	strcpy(name, path);
	if (!realpath(dirname(folder), whole))
		return -errno;
	if (strlen(whole) + strlen(basename(name)) + 64 > PATH_MAX)
		return -ENAMETOOLONG;
	snprintf(path, PATH_MAX, "%s/%s", strcmp(whole, "/") ? whole : "", basename(name));
	return 0;
}

static int refuse(const struct lib_config *c, int rc, struct err *e)
{
	err_set(e, NULL, 0, "persist=%s: %s", c->persist, strerror(-rc));
	return rc;
}

int lib_survive(struct lib_config *c, struct lib_survival *s, struct err *e)
{
	const struct recover_config recovery = { .folder = c->recovered,
						 .set_aside_failed =
							 c->recovery == RECOVERY_SET_ASIDE,
						 .told = note,
						 .ctx = s };
	u64 bytes = max_u64(c->engine.memory_bytes, c->engine.max_memory_bytes);
	int rc;

	s->last = &s->first;
	if (!*c->persist)
		return 0;
	if (c->engine.huge_pages == HUGE_ALWAYS)
		return err_set(e, NULL, 0,
			       "huge_pages=always and persist exclude each other: a persist file "
			       "on hugetlbfs, or on tmpfs with huge=always, is on huge pages");
	rc = absolute(c->persist);
	if (!rc && *c->recovered)
		rc = absolute(c->recovered);
	if (rc)
		return refuse(c, rc, e);
	rc = recover(c->persist, &recovery, &s->recovery, e);
	if (!rc)
		rc = persist_create(c->persist, (u32)(bytes / PAGE_SIZE), &s->persist, e);
	c->engine.persist = s->persist;
	return rc ? refuse(c, rc, e) : 0;
}

void lib_survival_end(struct lib_survival *s)
{
	if (s->persist)
		persist_close(s->persist, true);
	while (s->first) {
		struct lib_recovered *next = s->first->next;

		free(s->first);
		s->first = next;
	}
}

void lib_survival_tell(const struct lib_survival *s,
		       void (*fn)(void *ctx, const struct recovered *r), void *ctx)
{
	for (const struct lib_recovered *one = s->first; one; one = one->next)
		fn(ctx, &one->report);
}

/* --- as the library's own */

struct telling {
	void (*fn)(void *ctx, const struct sluice_recovered *r);
	void *ctx;
};

static_assert(SLUICE_RECOVERED_WRITTEN == RECOVERED_WRITTEN &&
		      SLUICE_RECOVERED_ASIDE == RECOVERED_ASIDE &&
		      SLUICE_RECOVERED_DROPPED == RECOVERED_DROPPED,
	      "goes through as it is");

static void tell(void *ctx, const struct recovered *r)
{
	const struct telling *t = ctx;
	const struct sluice_recovered out = { .size = sizeof(out),
					      .how = (int)r->how,
					      .bytes = r->bytes,
					      .path = r->path,
					      .why = r->why,
					      .where = r->where };

	t->fn(t->ctx, &out);
}

void sluice_recovered(struct sluice *c, void (*fn)(void *ctx, const struct sluice_recovered *r),
		      void *ctx)
{
	struct telling t = { fn, ctx };

	lib_survival_tell(&c->survival, tell, &t);
}
