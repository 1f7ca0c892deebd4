/* SPDX-License-Identifier: MIT */
/*
 * Policies are rows of two tables. `choices` has a row for each question: its key,
 * where its answer stands in struct policy, and the answers there are, in the order
 * of the enum, each with the sentence that explains it. `presets` has a row for each
 * named policy. Reading, printing and explaining a policy are loops over the first
 * table, so that a new choice is a new row and nothing else.
 *
 * What tells the Linux releases apart: Linux writeback reference, section 16; what
 * the remedies for large folios do: section 12. The enums' values are the indices of
 * the answers, so every answer is stored as the 32-bit number of its place.
 */
#include "writeback/policy.h"
#include <stdio.h>
#include <string.h>

struct answer {
	const char *value;
	const char *meaning;
};

struct choice {
	const char *key;
	size_t offset; /* of a 32-bit field of struct policy */
	const struct answer *answers;
	u32 count;
	const char *values;
};

static const struct answer accounting[] = {
	[ACCOUNT_FOLIO] = { "folio", "a folio with one dirty block is charged whole" },
	[ACCOUNT_PAGE] = { "page", "each page with a dirty block is charged, the folio around it "
				   "is charged whole only while in flight" },
	[ACCOUNT_DEBT] = { "debt", "each page with a dirty block is charged, dirty and in flight, "
				   "exactly what must be written" },
};

static const struct answer pinned[] = {
	[PINNED_IGNORE] = { "ignore", "clean pages that share a folio with dirty ones just stay" },
	[PINNED_SHED] = { "shed", "dirty folios are split, so that clean pages can be freed, when "
				  "more than their share of memory is pinned or memory is short" },
};

static const struct answer small_write[] = {
	[SMALL_WRITE_KEEP] = { "keep", "a small write dirties the large clean folio it finds" },
	[SMALL_WRITE_SPLIT] = { "split", "a small write first splits a clean folio four times its "
					 "size or more, and dirties its own piece" },
	[SMALL_WRITE_EVICT] = { "evict", "a small write first drops a clean folio four times its "
					 "size or more, and makes one of its own size" },
};

static const struct answer write_order[] = {
	[WRITE_ORDER_ZERO] = { "zero", "a write makes 4 KiB folios, one page a step" },
	[WRITE_ORDER_LENGTH] = { "length", "a write makes folios as large as what it has left to "
					   "write" },
};

static const struct answer readahead[] = {
	[READAHEAD_MARK_ORDER] = { "mark-order", "the next window's folios are four times the one "
						 "found marked in the cache" },
	[READAHEAD_FILE_ORDER] = { "file-order", "the folio order is kept in the open file, grows "
						 "window by window and never falls back" },
};

static const struct answer writeout[] = {
	[WRITEOUT_FOLIO] = { "folio", "every valid block of a dirty folio is written" },
	[WRITEOUT_BLOCK] = { "block", "only the dirty blocks of a folio are written" },
};

static const struct answer write_lock[] = {
	[WRITE_LOCK_INODE] = { "inode", "one writer a file at a time, and it keeps the file while "
					"it is throttled" },
	[WRITE_LOCK_FOLIO] = { "folio", "writers of one file exclude each other only on the same "
					"folio" },
};

static const struct answer wb_floor[] = {
	[WB_FLOOR_POSITION] = { "position", "a device's floor of an eighth of the room below the "
					    "limit acts only in the position feedback" },
	[WB_FLOOR_THRESHOLD] = { "threshold", "a device's floor of an eighth of the room below the "
					      "limit acts in its threshold itself" },
};

static const struct answer reclaim[] = {
	[RECLAIM_LRU2] = { "lru2", "two lists: what was used twice goes after what was not" },
	[RECLAIM_SIEVE] = { "sieve",
			    "one list and a hand, which spares what was used again since it "
			    "passed" },
	[RECLAIM_S3FIFO] = { "s3fifo", "a small queue for what is new, and a main one for what was "
				       "used again while in it or soon after it left" },
};

static const struct answer errors[] = {
	[ERRORS_KEEP] = { "keep", "data that could not be written stays dirty, is tried again, and "
				  "every fsync fails until it is safe" },
	[ERRORS_LINUX] = { "linux", "data that could not be written counts as clean, and each open "
				    "file is told once" },
};

static const struct answer foreign[] = {
	[FOREIGN_NONE] = { "none",
			   "an inode is written for the tenant who dirties most of it; what "
			   "others have dirty in it waits for that" },
	[FOREIGN_FLUSH] = { "flush", "a throttled tenant has the owners' dirty files written in "
				     "whose inodes it has dirtied pages lately" },
	[FOREIGN_SKIP_SHARED] = { "skip-shared", "as flush, but not for inodes that are "
						 "everybody's, as a file system's metadata" },
	[FOREIGN_TARGETED] = { "targeted",
			       "each dirty page is known by its tenant, who has his own "
			       "written, in whatever file, and nothing else" },
};

static const struct answer tenant_limits[] = {
	[TENANT_LIMITS_MEMCG] = { "memcg", "a tenant may have a share dirty of the memory it uses "
					   "and could still get, as Linux's cgroups" },
	[TENANT_LIMITS_PLAIN] = { "plain",
				  "a tenant may have dirty what it is given in bytes, or as "
				  "a share of all memory" },
};

#define SHARE(percent)                                                               \
	{                                                                            \
#percent, "at most " #percent " % of memory is held by dirty folios" \
	}

static const struct answer pinned_share[] = {
	SHARE(0),  SHARE(10), SHARE(20), SHARE(30), SHARE(40),  SHARE(50),
	SHARE(60), SHARE(70), SHARE(80), SHARE(90), SHARE(100),
};

static const struct answer wb_counters[] = {
	[WB_COUNTERS_EXACT] = { "exact", "the flusher knows how much is dirty on its device" },
	[WB_COUNTERS_PER_CPU] = { "per-cpu",
				  "what each CPU dirtied is unseen by the flusher until it "
				  "is a batch, as before Linux 5.14" },
};

static const struct answer ext4_folios[] = {
	[EXT4_FOLIOS_SINGLE] = { "single", "files on ext4 have 4 KiB folios only" },
	[EXT4_FOLIOS_LARGE] = { "large", "files on ext4 have large folios as others have" },
};

static const struct answer dontcache[] = {
	[DONTCACHE_INLINE] = { "inline", "a write with DONTCACHE submits its own write-out before "
					 "it returns, as Linux 6.14 to 7.1" },
	[DONTCACHE_KICK] = { "kick", "a write with DONTCACHE wakes the flusher, which writes as "
				     "many pages of the oldest files as are dirty for DONTCACHE" },
	[DONTCACHE_OWN] = { "own", "the flusher writes just the pages of DONTCACHE, in file order, "
				   "and writers wait while more of them are dirty or in flight "
				   "than the device writes in 100 ms" },
};

static const struct answer flush_depth[] = {
	[FLUSH_DEPTH_FIXED] = { "fixed", "background write-out fills the device's queue" },
	[FLUSH_DEPTH_ADAPTIVE] = { "adaptive", "background write-out has the less in flight the "
					       "longer readers of the device wait, and fills the "
					       "queue when nobody reads" },
};

static const struct answer file_queue[] = {
	[FILE_QUEUE_FAIR] = { "fair", "writers get a file's lock in the order they came" },
	[FILE_QUEUE_BARGING] = { "barging", "a running writer takes a file's lock past those who "
					    "sleep for it, until one has waited 4 ms" },
};

static const struct answer max_order[] = {
	{ "0", "no folio is larger than 4 KiB" },   { "1", "no folio is larger than 8 KiB" },
	{ "2", "no folio is larger than 16 KiB" },  { "3", "no folio is larger than 32 KiB" },
	{ "4", "no folio is larger than 64 KiB" },  { "5", "no folio is larger than 128 KiB" },
	{ "6", "no folio is larger than 256 KiB" }, { "7", "no folio is larger than 512 KiB" },
	{ "8", "no folio is larger than 1 MiB" },   { "9", "no folio is larger than 2 MiB" },
};

#define CHOICE(field, values)                                                            \
	{                                                                                \
#field, offsetof(struct policy, field), field, ARRAY_SIZE(field), values \
	}

static const struct choice choices[] = {
	CHOICE(accounting, "folio|page|debt"),
	CHOICE(pinned, "ignore|shed"),
	CHOICE(small_write, "keep|split|evict"),
	CHOICE(write_order, "zero|length"),
	CHOICE(readahead, "mark-order|file-order"),
	CHOICE(writeout, "folio|block"),
	CHOICE(write_lock, "inode|folio"),
	CHOICE(wb_floor, "position|threshold"),
	CHOICE(reclaim, "lru2|sieve|s3fifo"),
	CHOICE(errors, "keep|linux"),
	CHOICE(pinned_share, "0|10|20|30|40|50|60|70|80|90|100"),
	CHOICE(wb_counters, "exact|per-cpu"),
	CHOICE(ext4_folios, "single|large"),
	CHOICE(max_order, "0|1|2|3|4|5|6|7|8|9"),
	CHOICE(dontcache, "inline|kick|own"),
	CHOICE(flush_depth, "fixed|adaptive"),
	CHOICE(foreign, "none|flush|skip-shared|targeted"),
	CHOICE(tenant_limits, "memcg|plain"),
	CHOICE(file_queue, "fair|barging"),
};

struct preset {
	struct policy policy;
	const char *about;
};

#define LINUX(release, order, source, unit, floor, ext4, drop)                                    \
	{                                                                                         \
		.name = "linux-" release, .accounting = ACCOUNT_FOLIO, .pinned = PINNED_IGNORE,   \
		.small_write = SMALL_WRITE_KEEP, .write_order = order, .readahead = source,       \
		.writeout = unit, .write_lock = WRITE_LOCK_INODE, .wb_floor = floor,              \
		.reclaim = RECLAIM_LRU2, .pinned_share = 10, .ext4_folios = ext4, .max_order = 9, \
		.dontcache = drop, .foreign = FOREIGN_FLUSH                                       \
	}

static const struct preset presets[] = {
	{ LINUX("6.1", WRITE_ORDER_ZERO, READAHEAD_MARK_ORDER, WRITEOUT_FOLIO, WB_FLOOR_POSITION,
		EXT4_FOLIOS_SINGLE, DONTCACHE_INLINE),
	  "Linux 6.1: writes make 4 KiB folios, dirty folios are written whole" },
	{ LINUX("6.6", WRITE_ORDER_LENGTH, READAHEAD_MARK_ORDER, WRITEOUT_BLOCK, WB_FLOOR_POSITION,
		EXT4_FOLIOS_SINGLE, DONTCACHE_INLINE),
	  "Linux 6.6: large folios on writes too, only their dirty blocks are written" },
	{ LINUX("6.12", WRITE_ORDER_LENGTH, READAHEAD_MARK_ORDER, WRITEOUT_BLOCK, WB_FLOOR_POSITION,
		EXT4_FOLIOS_SINGLE, DONTCACHE_INLINE),
	  "Linux 6.12: paces and writes as 6.6" },
	{ LINUX("6.18", WRITE_ORDER_LENGTH, READAHEAD_FILE_ORDER, WRITEOUT_BLOCK,
		WB_FLOOR_THRESHOLD, EXT4_FOLIOS_LARGE, DONTCACHE_INLINE),
	  "Linux 6.18: readahead keeps the largest folio order once it has ramped up" },
	{ LINUX("7.4", WRITE_ORDER_LENGTH, READAHEAD_FILE_ORDER, WRITEOUT_BLOCK, WB_FLOOR_THRESHOLD,
		EXT4_FOLIOS_LARGE, DONTCACHE_KICK),
	  "Linux 7.4: paces and writes as 6.18, DONTCACHE wakes the flusher" },
	{ { .name = "sluice",
	    .accounting = ACCOUNT_DEBT,
	    .pinned = PINNED_SHED,
	    .small_write = SMALL_WRITE_KEEP,
	    .write_order = WRITE_ORDER_LENGTH,
	    .readahead = READAHEAD_FILE_ORDER,
	    .writeout = WRITEOUT_BLOCK,
	    .write_lock = WRITE_LOCK_FOLIO,
	    .wb_floor = WB_FLOOR_THRESHOLD,
	    .reclaim = RECLAIM_S3FIFO,
	    .pinned_share = 5,
	    .ext4_folios = EXT4_FOLIOS_LARGE,
	    .max_order = 9,
	    .dontcache = DONTCACHE_OWN,
	    .flush_depth = FLUSH_DEPTH_ADAPTIVE,
	    .foreign = FOREIGN_TARGETED,
	    .tenant_limits = TENANT_LIMITS_PLAIN },
	  "Ours: paces by what must be written, sheds what it pins instead of stalling writers" },
};

const struct policy *policy_preset(size_t i)
{
	return i < ARRAY_SIZE(presets) ? &presets[i].policy : NULL;
}

const char *policy_about(size_t i)
{
	return i < ARRAY_SIZE(presets) ? presets[i].about : NULL;
}

const struct policy *policy_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(presets); i++)
		if (!strcmp(presets[i].policy.name, name))
			return &presets[i].policy;
	return NULL;
}

const char *policy_key(size_t i)
{
	return i < ARRAY_SIZE(choices) ? choices[i].key : NULL;
}

static const struct choice *choice_find(const char *key)
{
	for (size_t i = 0; i < ARRAY_SIZE(choices); i++)
		if (!strcmp(choices[i].key, key))
			return &choices[i];
	return NULL;
}

bool policy_has_key(const char *key)
{
	return choice_find(key) != NULL;
}

static u32 answer_of(const struct policy *p, const struct choice *c)
{
	u32 answer;

	_Static_assert(sizeof(p->accounting) == sizeof(answer), "answers are 32 bits");
	memcpy(&answer, (const char *)p + c->offset, sizeof(answer));
	assert(answer < c->count);
	return answer;
}

/* "did you mean" needs the keys side by side. */
static const char *nearest_key(const char *key)
{
	const char *keys[ARRAY_SIZE(choices)];

	for (size_t i = 0; i < ARRAY_SIZE(choices); i++)
		keys[i] = choices[i].key;
	return err_nearest(key, keys, ARRAY_SIZE(choices));
}

int policy_set(struct policy *p, const char *key, const char *value, struct err *e)
{
	const struct choice *c = choice_find(key);
	const char *near;

	if (!c) {
		near = nearest_key(key);
		if (near)
			return err_set(e, NULL, 0,
				       "unknown policy key \"%s\"; did you mean \"%s\"?", key,
				       near);
		return err_set(e, NULL, 0, "unknown policy key \"%s\"", key);
	}
	for (u32 i = 0; i < c->count; i++) {
		if (!strcmp(c->answers[i].value, value)) {
			memcpy((char *)p + c->offset, &i, sizeof(i));
			return 0;
		}
	}
	return err_set(e, NULL, 0, "%s cannot be \"%s\", only %s", key, value, c->values);
}

const char *policy_value(const struct policy *p, size_t key, char buf[16])
{
	assert(key < ARRAY_SIZE(choices));
	snprintf(buf, 16, "%s", choices[key].answers[answer_of(p, &choices[key])].value);
	return buf;
}

const char *policy_meaning(const struct policy *p, size_t key)
{
	assert(key < ARRAY_SIZE(choices));
	return choices[key].answers[answer_of(p, &choices[key])].meaning;
}

const char *policy_values(size_t key)
{
	return key < ARRAY_SIZE(choices) ? choices[key].values : NULL;
}

const char *policy_label(const struct policy *p, char *buf, size_t size)
{
	const struct policy *base = policy_find(p->name);
	size_t used = (size_t)snprintf(buf, size, "%s", p->name);

	for (size_t i = 0; base && i < ARRAY_SIZE(choices) && used < size; i++) {
		const struct choice *c = &choices[i];
		u32 answer = answer_of(p, c);

		if (answer != answer_of(base, c))
			used += (size_t)snprintf(buf + used, size - used, " %s=%s", c->key,
						 c->answers[answer].value);
	}
	return buf;
}
