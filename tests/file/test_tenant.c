// SPDX-License-Identifier: MIT
/* Tenants: whose pages are, what they may have dirty, and what is written for them. */
#include "base/rng.h"
#include "file/tenant.h"
#include "rig.h"
#include <stdio.h>

static struct rig *open_rig(const char *policy, enum policy_foreign foreign)
{
	struct rig *r = rig_new(policy, 64 * MIB);

	r->config.policy.foreign = foreign;
	rig_start(r);
	return r;
}

static struct tenant *add(struct rig *r, const char *name, struct tenant_settings s)
{
	struct tenant *t;

	assert_int_equal(engine_add_tenant(r->e, name, &s, &t), 0);
	return t;
}

static struct tenant_stats stats(struct rig *r, struct tenant *t)
{
	struct tenant_stats s;

	engine_tenant_stats(r->e, t, &s);
	return s;
}

static const struct tenant_settings none;

RIG_TEST(a_tenant_is_charged_what_its_thread_writes)
{
	struct rig *r = rig_open("sluice");
	struct inode *inode = rig_inode(r, PAGE_SIZE);
	struct file *f = rig_file(inode, 0);
	struct tenant *a = add(r, "a", none), *b = add(r, "b", none);
	u64 before = engine_act_for(a);

	rig_write(f, 0, 64 * KIB, 1);
	engine_act_for(b);
	rig_write(f, 64 * KIB, 8 * KIB, 1);
	rig_write(f, 0, 4 * KIB, 2); /* it stays a's until it is written */
	engine_restore(before);
	rig_write(f, 1 * MIB, 4 * KIB, 1);
	assert_int_equal(stats(r, a).debt, 16);
	assert_int_equal(stats(r, b).debt, 2);
	rig_audit(r);
	assert_int_equal(engine_sync(r->e), 0);
	assert_int_equal(stats(r, a).debt, 0);
	assert_int_equal(stats(r, a).pages_written, 16);
	assert_int_equal(stats(r, b).pages_written, 2);
	assert_int_equal(stats(r, b).charged, 2);
	rig_end(r, f);
}

RIG_TEST(a_file_may_be_a_tenants)
{
	struct rig *r = rig_open("sluice");
	struct inode *inode = rig_inode(r, PAGE_SIZE);
	struct file *f = rig_file(inode, 0), *g = rig_file(inode, 0);
	struct tenant *a = add(r, "a", none), *b = add(r, "b", none);

	file_set_tenant(f, a);
	engine_act_for(b);
	rig_write(f, 0, 4 * KIB, 1);
	rig_write(g, 4 * KIB, 8 * KIB, 1);
	assert_int_equal(stats(r, a).debt, 1);
	assert_int_equal(stats(r, b).debt, 2);
	file_set_tenant(f, NULL);
	rig_write(f, 16 * KIB, 4 * KIB, 1);
	assert_int_equal(stats(r, b).debt, 3);
	engine_act_for(NULL);
	rig_write(f, 20 * KIB, 4 * KIB, 1);
	assert_int_equal(stats(r, b).debt, 3);
	file_close(g);
	rig_end(r, f);
}

/* Under Linux's ownership a folio is his who brought it in, whoever writes to it. */
RIG_TEST(folios_are_his_who_touched_them_first)
{
	struct rig *r = open_rig("linux-7.4", FOREIGN_FLUSH);
	struct inode *inode = rig_inode(r, PAGE_SIZE);
	struct file *f = rig_file(inode, 0);
	struct tenant *a = add(r, "a", none), *b = add(r, "b", none);

	engine_act_for(a);
	rig_write(f, 0, 32 * KIB, 1);
	assert_int_equal(engine_sync(r->e), 0);
	engine_act_for(b);
	rig_write(f, 0, 4 * KIB, 2);
	assert_int_equal(stats(r, a).dirty, 8); /* a folio of 32 KiB */
	assert_int_equal(stats(r, b).dirty, 0);
	assert_ptr_equal(inode->home->tenant, a);
	rig_audit(r);
	engine_act_for(NULL);
	rig_end(r, f);
}

RIG_TEST(names_and_settings_are_checked)
{
	struct rig *r = rig_open("sluice");
	struct tenant_settings bad = { .dirty_ratio = 101 };
	struct tenant *t;

	assert_null(engine_tenant(r->e, "a"));
	assert_int_equal(engine_add_tenant(r->e, "a", &bad, &t), -EINVAL);
	bad = (struct tenant_settings){ .dirty_bytes = 4096 };
	assert_int_equal(engine_add_tenant(r->e, "a", &bad, &t), -EINVAL);
	assert_int_equal(engine_add_tenant(r->e, "", &none, &t), -EINVAL);
	add(r, "a", none);
	assert_int_equal(engine_add_tenant(r->e, "a", &none, &t), -EEXIST);
	t = engine_tenant(r->e, "a");
	assert_string_equal(engine_tenant_name(t), "a");
	assert_ptr_equal(engine_tenant_at(r->e, 0), t);
	assert_null(engine_tenant_at(r->e, 1));
	assert_int_equal(engine_set_tenant(r->e, t, &bad), -EINVAL);
	engine_close_tenant(r->e, t);
	assert_null(engine_tenant(r->e, "a"));
	assert_ptr_equal(add(r, "b", none), t); /* nothing was left of a: its place is b's */
	rig_close(r);
}

/* Writes so much in steps of a page, each to a page of its own. */
static u64 sleep_of_writing(struct rig *r, struct tenant *t, u64 bytes)
{
	struct inode *inode = rig_inode(r, PAGE_SIZE);
	struct file *f = rig_file(inode, 0);
	u64 before = engine_act_for(t), slept = stats(r, t).throttle_sleep_ns;

	for (u64 at = 0; at < bytes; at += PAGE_SIZE)
		rig_write(f, at, PAGE_SIZE, 1);
	engine_restore(before);
	slept = stats(r, t).throttle_sleep_ns - slept;
	assert_int_equal(engine_sync(r->e), 0);
	rig_drop(f);
	return slept;
}

RIG_TEST(limits_are_each_tenants_own_and_the_floor_is_free)
{
	struct rig *r = rig_new("sluice", 64 * MIB);
	struct tenant *small, *large, *floored;

	r->device_config.bytes_per_s = 10.0 * MIB;
	rig_start(r);
	small = add(r, "small",
		    (struct tenant_settings){ .dirty_bytes = 1 * MIB,
					      .dirty_background_bytes = 512 * KIB });
	large = add(r, "large", none);
	floored = add(r, "floored",
		      (struct tenant_settings){ .dirty_bytes = 1 * MIB,
						.dirty_background_bytes = 512 * KIB,
						.floor_bytes = 4 * MIB });
	assert_int_equal(stats(r, small).thresh, 256);
	assert_int_equal(stats(r, small).background_thresh, 128);
	assert_true(sleep_of_writing(r, small, 4 * MIB) > 100 * NSEC_PER_MSEC);
	assert_int_equal(sleep_of_writing(r, large, 4 * MIB), 0);
	assert_int_equal(sleep_of_writing(r, floored, 4 * MIB - PAGE_SIZE), 0);
	assert_true(sleep_of_writing(r, floored, 8 * MIB) > 0);
	rig_close(r);
}

static void write_as(struct rig *r, struct tenant *t, struct file *f, u64 offset, u64 bytes)
{
	u64 before = engine_act_for(t);

	(void)r;
	rig_write(f, offset, bytes, 1);
	engine_restore(before);
}

/*
 * Reference 4.3: of its file pages, and of those it could still get, which are what its memory
 * leaves room for and what is clean of others'. 20 and 10 % are 819 and 409 parts of 4096.
 */
RIG_TEST(linux_limits_are_of_the_memory_a_tenant_has_and_could_get)
{
	struct rig *r = rig_open("linux-7.4");
	struct file *f = rig_file(rig_inode(r, PAGE_SIZE), 0);
	struct tenant *roomy = add(r, "roomy", (struct tenant_settings){ .memory_bytes = 8 * MIB });
	struct tenant_settings small = { .memory_bytes = 200 * KIB };
	struct tenant *full = add(r, "full", none);
	struct tenant *bytes = add(r, "bytes", (struct tenant_settings){ .dirty_bytes = 1 * MIB });
	struct tenant *huge =
		add(r, "huge", (struct tenant_settings){ .memory_bytes = 1024 * MIB });

	write_as(r, roomy, f, 0, 400 * KIB);
	write_as(r, full, f, 1 * MIB, 400 * KIB);
	/* now it has more than that */
	assert_int_equal(engine_set_tenant(r->e, full, &small), 0);
	assert_int_equal(stats(r, roomy).cached, 100);
	assert_int_equal(stats(r, full).dirty, 100);
	/* 16,385 pages, 200 of them dirty. 100 it has, 1,948 it may still get */
	assert_int_equal(stats(r, roomy).thresh, 819 * 2048 / 4096);
	assert_int_equal(stats(r, roomy).background_thresh, 409 * 2048 / 4096);
	/* its memory is full: 50 pages */
	assert_int_equal(stats(r, full).thresh, 819 * 50 / 4096);
	assert_int_equal(stats(r, full).background_thresh, 409 * 50 / 4096);
	/* 1 MiB of 16,385 pages are 64 parts, rounded up; of 16,185 clean pages */
	assert_int_equal(stats(r, bytes).thresh, 64 * 16185 / 4096);
	assert_int_equal(stats(r, bytes).background_thresh, 64 * 16185 / 4096 / 2);
	/* more memory than there is: what is clean bounds it */
	assert_int_equal(stats(r, huge).thresh, 819 * 16185 / 4096);
	assert_int_equal(engine_sync(r->e), 0);
	assert_int_equal(stats(r, roomy).thresh, 819 * 2048 / 4096);
	assert_int_equal(stats(r, huge).thresh, 819 * 16385 / 4096);
	/* its own clean pages are not others': 100 it has, and 16,285 */
	assert_int_equal(engine_set_tenant(r->e, roomy, &none), 0);
	assert_int_equal(stats(r, roomy).thresh, 819 * 16385 / 4096);
	rig_end(r, f);
}

/* A throttled tenant's own pages are written, from a file that is full of others' dirty ones. */
RIG_TEST(targeted_writes_what_the_tenant_dirtied_and_nothing_else)
{
	struct rig *r = rig_open("sluice");
	struct inode *inode = rig_inode(r, PAGE_SIZE);
	struct file *f = rig_file(inode, 0);
	struct tenant *hot = add(r, "hot", none), *small;
	u64 written;

	small = add(r, "small",
		    (struct tenant_settings){ .dirty_bytes = 256 * KIB,
					      .dirty_background_bytes = 128 * KIB });
	engine_act_for(hot);
	for (u64 at = 0; at < 4 * MIB; at += 2 * PAGE_SIZE)
		rig_write(f, at, PAGE_SIZE, 1);
	engine_act_for(small);
	for (u64 at = 1 * PAGE_SIZE; at < 4 * MIB; at += 2 * PAGE_SIZE)
		rig_write(f, at, PAGE_SIZE, 1);
	engine_act_for(NULL);
	world_sleep_until(world_now() + 2 * NSEC_PER_SEC);
	written = stats(r, small).pages_written;
	assert_true(written > 512 - 64 && written <= 512);
	assert_int_equal(stats(r, hot).pages_written, 0);
	assert_int_equal(stats(r, hot).debt, 512);
	rig_audit(r);
	rig_end(r, f);
}

/*
 * Tenants who come one after the other into the same place, and go while their flusher is at a file
 * that they go on writing to: the last one's pages are written like the first one's.
 */
RIG_TEST(who_takes_a_place_is_served_like_the_one_before)
{
	static const struct tenant_settings limits = { .dirty_bytes = 256 * KIB,
						       .dirty_background_bytes = 128 * KIB };
	struct rig *r = rig_new("sluice", 64 * MIB);
	struct tenant *t = NULL, *first = NULL;
	struct file *f;

	r->device_config.bytes_per_s = 10.0 * MIB;
	r->device_config.queue_depth = 1; /* so that the flusher waits */
	rig_start(r);
	f = rig_file(rig_inode(r, PAGE_SIZE), 0);
	for (unsigned i = 0; i < 40; i++) {
		t = add(r, "visitor", limits);
		first = first ? first : t;
		assert_ptr_equal(t, first);
		engine_act_for(t);
		for (u64 page = 0; page < 40;
		     page++) /* above the background limit, below its own */
			rig_write(f, 2 * page * PAGE_SIZE, PAGE_SIZE, 1);
		if (i == 39)
			break;
		world_sleep_until(world_now() + i * NSEC_PER_MSEC / 2);
		rig_write(f, 1 * MIB, PAGE_SIZE, 1);
		engine_close_tenant(r->e, t);
		engine_act_for(NULL);
		assert_int_equal(engine_sync(r->e), 0);
		assert_int_equal(file_advise(f, 0, 0, FILE_ADV_DONTNEED), 0);
	}
	engine_act_for(NULL);
	world_sleep_until(world_now() + 2 * NSEC_PER_SEC);
	assert_true(stats(r, t).pages_written > 0);
	rig_audit(r);
	rig_end(r, f);
}

static void sync_in_vain(void *arg)
{
	struct rig *r = arg;

	assert_int_equal(engine_sync(r->e), -EIO);
}

/* A write under way when its tenant goes fails after that: the device's own flusher tries again. */
RIG_TEST(what_fails_after_its_tenant_went_is_written)
{
	struct rig *r = rig_new("linux-7.4", 64 * MIB);
	struct task *syncer;
	struct tenant *t;
	struct file *f;

	r->config.policy.foreign = FOREIGN_FLUSH;
	r->device_config.latency_ns = 20 * NSEC_PER_MSEC;
	rig_start(r);
	f = rig_file(rig_inode(r, PAGE_SIZE), 0);
	t = add(r, "visitor", none);
	engine_act_for(t);
	rig_write(f, 0, 4 * KIB, 1);
	r->write_error = -EIO;
	r->failures = 1;
	syncer = world_spawn("syncer", sync_in_vain, r);
	world_sleep_until(world_now() + NSEC_PER_MSEC);
	engine_close_tenant(r->e, t);
	engine_act_for(NULL);
	assert_int_equal(r->failures, 1);
	world_join(syncer);
	world_sleep_until(world_now() + 60 * NSEC_PER_SEC);
	assert_int_equal(r->failures, 0);
	assert_int_equal(inode_unwritten_bytes(file_inode(f)), 0);
	rig_end(r, f);
}

struct closing {
	struct rig *r;
	struct tenant *t;
};

static void close_tenant(void *arg)
{
	struct closing *c = arg;

	engine_close_tenant(c->r->e, c->t);
}

/* While his flusher comes to its end nobody looks at what he has dirty; a sync does. */
RIG_TEST(a_sync_leaves_nothing_of_a_tenant_who_goes)
{
	struct tenant_settings limits = { .dirty_bytes = 1 * MIB, .dirty_background_bytes = 8192 };
	struct rig *r = rig_new("linux-7.4", 64 * MIB);
	struct task *closer;
	struct file *large, *small;
	struct closing c = { .r = r };

	r->config.policy.foreign = FOREIGN_FLUSH;
	r->device_config.bytes_per_s = 10.0 * MIB;
	r->device_config.queue_depth = 1; /* so that the flusher waits */
	rig_start(r);
	large = rig_file(rig_inode(r, PAGE_SIZE), 0);
	small = rig_file(rig_inode(r, PAGE_SIZE), 0);
	c.t = add(r, "visitor", limits);
	engine_act_for(c.t);
	for (u64 page = 0; page < 160; page++)
		rig_write(large, 2 * page * PAGE_SIZE, PAGE_SIZE, 1);
	world_sleep_until(world_now() + NSEC_PER_MSEC);
	assert_true(stats(r, c.t).in_flight > 0); /* his flusher is at the large file */
	rig_write(small, 0, 4 * KIB, 1);
	closer = world_spawn("closer", close_tenant, &c);
	world_sleep_until(world_now() + NSEC_PER_MSEC);
	assert_ptr_equal(file_inode(small)->home->tenant, c.t);
	assert_int_equal(engine_sync(r->e), 0);
	assert_int_equal(inode_unwritten_bytes(file_inode(small)), 0);
	assert_int_equal(inode_unwritten_bytes(file_inode(large)), 0);
	engine_act_for(NULL);
	world_join(closer);
	rig_audit(r);
	rig_drop(small);
	rig_end(r, large);
}

/* What is no tenant's is written in the background wherever it lies in its file. */
RIG_TEST(background_writes_what_is_nobodys)
{
	struct rig *r = open_rig("sluice", FOREIGN_TARGETED);
	struct file *f = rig_file(rig_inode(r, PAGE_SIZE), 0);
	struct engine_stats s;

	add(r, "a", none);
	engine_stats(r->e, &s);
	for (u64 i = 0; i < s.background_thresh + 300; i++)
		rig_write(f, 1 * MIB + i * PAGE_SIZE, PAGE_SIZE, 1);
	world_sleep_until(world_now() + 4 * NSEC_PER_SEC);
	engine_stats(r->e, &s);
	assert_in_range(s.pages_written, 300, s.pages_dirtied);
	rig_audit(r);
	rig_end(r, f);
}

/* --- anything, in any order */

#define FILES   3
#define TENANTS 4
#define OPS     1500

static void act(struct rig *r, struct rng *rnd, struct file **f, struct tenant **t)
{
	u64 i = rng_below(rnd, FILES), at = rng_below(rnd, 600) * PAGE_SIZE;
	u64 who = rng_below(rnd, TENANTS + 1), length = PAGE_SIZE * (1 + rng_below(rnd, 40));
	int rc;

	engine_act_for(who < TENANTS ? t[who] : NULL);
	switch (rng_below(rnd, 16)) {
	case 0:
		rc = file_fsync(f[i], false);
		assert_true(!rc || rc == -EIO);
		break;
	case 1:
		assert_int_equal(inode_truncate(f[i]->inode, at), 0);
		break;
	case 2:
		world_sleep_until(world_now() + rng_below(rnd, 3000) * NSEC_PER_MSEC);
		break;
	case 3:
		engine_drop_caches(r->e);
		break;
	case 4:
		assert_int_equal(file_fallocate(f[i], FILE_PUNCH_HOLE | FILE_KEEP_SIZE, at, length),
				 0);
		break;
	case 5:
		if (who < TENANTS) {
			char name[16];

			engine_close_tenant(r->e, t[who]);
			snprintf(name, sizeof(name), "t%llu",
				 (unsigned long long)rng_u64(rnd) % 100000);
			t[who] = add(r, name,
				     (struct tenant_settings){
					     .dirty_bytes = 128 * KIB + rng_below(rnd, MIB) });
		}
		break;
	case 6:
		r->write_error = -EIO;
		r->failures = 1 + (u32)rng_below(rnd, 3);
		break;
	case 7:
		inode_set_shared(f[i]->inode, rng_below(rnd, 2));
		break;
	default:
		rig_write(f[i], at + rng_below(rnd, 4) * 1024, length, 1);
	}
}

static void anything(void *arg)
{
	static const u32 blocks[FILES] = { 512, 1024, 4096 };
	enum policy_foreign foreign = *(enum policy_foreign *)arg;

	for (u64 seed = 1; seed <= 4; seed++) {
		struct rig *r = rig_new(seed % 2 ? "sluice" : "linux-7.4", 64 * MIB);
		struct rng rnd;
		struct file *f[FILES];
		struct tenant *t[TENANTS];

		rng_init(&rnd, seed);
		r->config.policy.foreign = foreign;
		r->config.policy.tenant_limits = (enum policy_tenant_limits)(seed / 2 % 2);
		r->device_config.bytes_per_s = 40.0 * MIB;
		rig_start(r);
		for (u64 i = 0; i < FILES; i++)
			f[i] = rig_file(rig_inode(r, blocks[i]), 0);
		rig_write(f[0], 0, MIB, 1); /* before there are any */
		for (u64 i = 0; i < TENANTS; i++) {
			char name[16];

			snprintf(name, sizeof(name), "first%llu", (unsigned long long)i);
			t[i] = add(r, name,
				   (struct tenant_settings){ .dirty_bytes = 256 * KIB << i,
							     .floor_bytes = i * 64 * KIB });
		}
		for (u64 i = 0; i < OPS; i++) {
			act(r, &rnd, f, t);
			if (i % 4 == 0)
				rig_audit(r);
		}
		engine_act_for(NULL);
		r->failures = 0;
		world_sleep_until(world_now() + 30 * NSEC_PER_SEC);
		assert_int_equal(engine_sync(r->e), 0);
		rig_audit(r);
		for (u64 i = 0; i < FILES; i++)
			rig_drop(f[i]);
		rig_close(r);
	}
}

static void run_anything(enum policy_foreign foreign)
{
	rig_run(anything, &foreign);
}

static void anything_under_none(void **state)
{
	(void)state;
	run_anything(FOREIGN_NONE);
}

static void anything_under_flush(void **state)
{
	(void)state;
	run_anything(FOREIGN_FLUSH);
}

static void anything_under_skip_shared(void **state)
{
	(void)state;
	run_anything(FOREIGN_SKIP_SHARED);
}

static void anything_under_targeted(void **state)
{
	(void)state;
	run_anything(FOREIGN_TARGETED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tenant_is_charged_what_its_thread_writes),
		cmocka_unit_test(a_file_may_be_a_tenants),
		cmocka_unit_test(folios_are_his_who_touched_them_first),
		cmocka_unit_test(names_and_settings_are_checked),
		cmocka_unit_test(limits_are_each_tenants_own_and_the_floor_is_free),
		cmocka_unit_test(linux_limits_are_of_the_memory_a_tenant_has_and_could_get),
		cmocka_unit_test(targeted_writes_what_the_tenant_dirtied_and_nothing_else),
		cmocka_unit_test(who_takes_a_place_is_served_like_the_one_before),
		cmocka_unit_test(what_fails_after_its_tenant_went_is_written),
		cmocka_unit_test(a_sync_leaves_nothing_of_a_tenant_who_goes),
		cmocka_unit_test(background_writes_what_is_nobodys),
		cmocka_unit_test(anything_under_none),
		cmocka_unit_test(anything_under_flush),
		cmocka_unit_test(anything_under_skip_shared),
		cmocka_unit_test(anything_under_targeted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
