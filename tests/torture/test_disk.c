/* SPDX-License-Identifier: MIT */
/*
 * Engines over the disks of the torture: what its runs have found, once more as it happened; and
 * what the disks themselves keep and lose.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "file/inner.h"
#include "torture/disk.h"
#include "world/sim.h"
#include <cmocka.h>
#include <errno.h>
#include <string.h>

#define FILE_BYTES (64u << 10)

struct rig {
	struct policy policy;
	enum disk_kind kind;
	u64 room_pages;
	void (*fn)(struct rig *r);
	struct disk disk;
	struct engine *engine;
	struct store *store;
	struct inode *inode;
	struct file *file, *direct;
	bool breaks; /* writes end in the midst */
};

static u8 buf[FILE_BYTES];

static int fault(void *ctx, const struct io *io)
{
	struct rig *r = ctx;

	if (r->breaks && io->op == IO_WRITE) {
		r->disk.breaks = -EIO;
		r->disk.breaks_in = 1;
	}
	return 0;
}

static u64 sent(void *ctx, const struct io *io)
{
	disk_sent(ctx, io);
	return 0;
}

static void rig_main(void *arg)
{
	struct rig *r = arg;
	struct engine_config c = { .memory_bytes = 256 * PAGE_SIZE,
				   .contents = true,
				   .policy = r->policy };
	struct device_config d;
	struct device *device;
	char why[256] = "";

	vm_settings_init(&c.vm);
	assert_int_equal(device_config_init(&d, "rate"), 0);
	assert_int_equal(device_create(&d, &device), 0);
	disk_init(&r->disk, device, 1);
	r->disk.room_pages = r->room_pages;
	device_set_fault(device, fault, r);
	device_set_delay(device, sent, &r->disk);
	assert_int_equal(engine_create(&c, &r->engine), 0);
	assert_int_equal(engine_add_device(r->engine, device, 128, false), 0);
	assert_int_equal(disk_store_create(&r->disk, r->kind, FILE_BYTES, &r->store), 0);
	assert_int_equal(inode_create_on(r->engine, 0, 512, r->store, &r->inode), 0);
	assert_int_equal(file_open(r->inode, 0, &r->file), 0);
	assert_int_equal(file_open(r->inode, FILE_DIRECT, &r->direct), 0);
	r->fn(r);
	if (!engine_audit(r->engine, why, sizeof(why)))
		fail_msg("%s", why);
	file_close(r->file);
	file_close(r->direct);
	assert_int_equal(engine_destroy(r->engine), 0);
	device_destroy(device);
}

static void run_policy(const struct policy *p, enum disk_kind kind, u64 room_pages,
		       void (*fn)(struct rig *r))
{
	struct rig r = { .policy = *p, .kind = kind, .room_pages = room_pages, .fn = fn };
	char why[256] = "";
	struct sim_config c;
	struct world *w;

	sim_config_init(&c);
	w = sim_create(&c);
	assert_non_null(w);
	assert_int_equal(sim_run(w, rig_main, &r, why, sizeof(why)), 0);
	assert_string_equal(why, "");
	sim_destroy(w);
}

static void run(const char *policy, enum disk_kind kind, u64 room_pages, void (*fn)(struct rig *r))
{
	run_policy(policy_find(policy), kind, room_pages, fn);
}

static void write_at(struct file *f, u8 byte, u64 offset, size_t length)
{
	memset(buf, byte, length);
	assert_int_equal(file_pwrite(f, buf, length, offset), length);
}

static void expect(struct rig *r, u8 byte, u64 offset, size_t length)
{
	memset(buf, ~byte, length);
	assert_int_equal(file_pread(r->file, buf, length, offset), length);
	for (size_t i = 0; i < length; i++)
		if (buf[i] != byte)
			fail_msg("byte %llu is %02x", (unsigned long long)(offset + i), buf[i]);
}

/* A direct write past the end that failed half way: what it left is not to be seen, ever. */
static void litter(struct rig *r)
{
	write_at(r->file, 1, 0, 1000);
	assert_int_equal(file_fsync(r->file, false), 0);
	r->breaks = true;
	memset(buf, 2, 8192);
	assert_int_equal(file_pwrite(r->direct, buf, 8192, 4096), -EIO);
	r->breaks = false;
	assert_int_equal(inode_size(r->inode), 1000);
	assert_int_equal(file_truncate(r->file, 20000), 0);
	expect(r, 0, 1000, 19000);
	assert_int_equal(file_fsync(r->file, false), 0);
	engine_drop_caches(r->engine);
	expect(r, 0, 1000, 19000);
}

static int refuse(void *ctx, struct disk *d)
{
	(void)d;
	return *(bool *)ctx ? -EIO : 0;
}

/* What cannot be cut off at once is cut off by fsync, which fails until it is. */
static void litter_that_stays(struct rig *r)
{
	bool refuses = true;

	write_at(r->file, 1, 0, 1000);
	assert_int_equal(file_fsync(r->file, false), 0);
	r->breaks = true;
	r->disk.refuses = refuse;
	r->disk.ctx = &refuses;
	memset(buf, 2, 8192);
	assert_int_equal(file_pwrite(r->direct, buf, 8192, 4096), -EIO);
	r->breaks = false;
	assert_true(store_size(r->store) > 1000);
	assert_int_equal(file_fsync(r->file, false), -EIO);
	assert_int_equal(file_fsync(r->file, true), -EIO);
	refuses = false;
	assert_int_equal(file_fsync(r->file, false), 0);
	assert_int_equal(store_size(r->store), 1000);
	expect(r, 1, 0, 1000);
}

static void test_fsync_leaves_nothing_past_the_end(void **state)
{
	(void)state;
	run("sluice", DISK_CUSTOM, 0, litter_that_stays);
}

static void test_a_failed_write_past_the_end_leaves_nothing(void **state)
{
	(void)state;
	run("sluice", DISK_FILE, 0, litter);
	run("sluice", DISK_BLOCKS, 0, litter);
	run("linux-7.4", DISK_CUSTOM, 0, litter);
}

/* The same where the cut is refused, too: then the file does not grow until it is not. */
static void stuck_litter(struct rig *r)
{
	bool refuses = true;

	write_at(r->file, 1, 0, 1000);
	assert_int_equal(file_fsync(r->file, false), 0);
	r->disk.refuses = refuse;
	r->disk.ctx = &refuses;
	r->breaks = true;
	memset(buf, 2, 8192);
	assert_int_equal(file_pwrite(r->direct, buf, 8192, 4096), -EIO);
	r->breaks = false;
	assert_int_equal(file_truncate(r->file, 20000), -EIO);
	assert_int_equal(file_pwrite(r->file, buf, 10, 15000), -EIO);
	assert_int_equal(file_pwrite(r->direct, buf, 512, 15360), -EIO);
	assert_int_equal(inode_size(r->inode), 1000);
	write_at(r->file, 3, 0, 1000); /* below the end all is as ever */
	refuses = false;
	assert_int_equal(file_pwrite(r->file, buf, 10, 15000), 10);
	expect(r, 0, 1000, 14000);
	expect(r, 3, 0, 1000);
}

static void test_what_cannot_be_cut_off_stops_growth(void **state)
{
	(void)state;
	run("sluice", DISK_CUSTOM, 0, stuck_litter);
}

/* How many calls are not refused. */
static int refuse_later(void *ctx, struct disk *d)
{
	u32 *left = ctx;

	(void)d;
	return *left ? (--*left, 0) : -EIO;
}

/* A store that was cut, and refuses to be cut again: the file is short, and no data goes astray. */
static void half_cut(struct rig *r)
{
	u32 left = 1;

	write_at(r->file, 1, 0, 16384);
	assert_int_equal(file_fsync(r->file, false), 0);
	r->disk.refuses = refuse_later;
	r->disk.ctx = &left;
	assert_int_equal(file_truncate(r->file, 4096), 0);
	assert_int_equal(inode_size(r->inode), 4096);
	assert_int_equal(file_pwrite(r->file, buf, 8192, 4096), -EIO);
	left = 1000;
	write_at(r->file, 2, 4096, 8192);
	assert_int_equal(file_fsync(r->file, false), 0);
	engine_drop_caches(r->engine);
	expect(r, 1, 0, 4096);
	expect(r, 2, 4096, 8192);
}

static void test_a_cut_that_fails_half_way(void **state)
{
	(void)state;
	run("sluice", DISK_CUSTOM, 0, half_cut);
	run("linux-7.4", DISK_CUSTOM, 0, half_cut);
}

static bool yes(void)
{
	return true;
}

/*
 * Where whole folios are written, those that the file was cut in need no room past its end; also if
 * there was no memory to split them there.
 */
static void cut_folio(struct rig *r)
{
	write_at(r->file, 1, 0, 16384);
	assert_int_equal(file_fsync(r->file, false), 0);
	alloc_refuses_frames = yes;
	assert_int_equal(file_truncate(r->file, 12288), 0);
	alloc_refuses_frames = NULL;
	/* another takes what became free */
	r->disk.used_pages++;
	assert_int_equal(r->disk.used_pages, r->disk.room_pages);
	write_at(r->file, 2, 4096, 100);
	assert_int_equal(file_fsync(r->file, false), 0);
	assert_int_equal(r->disk.overruns, 0);
	r->disk.used_pages--;
}

static void test_a_cut_folio_needs_no_room(void **state)
{
	struct policy p = *policy_find("linux-6.1");

	(void)state;
	p.write_order = WRITE_ORDER_LENGTH; /* large folios, written whole */
	run_policy(&p, DISK_BLOCKS, 4, cut_folio);
}

/* --- the disks */

/* A cut that has taken page 1, which is dirty, from the cache, and comes no further. */
struct cut {
	struct rig *r;
	struct folio *in_its_way;
	struct task *task;
};

static void cut_main(void *arg)
{
	struct rig *r = arg;

	assert_int_equal(file_truncate(r->file, 4096), 0);
}

static struct cut begin_cut(struct rig *r)
{
	struct cut c = { .r = r };

	for (u64 page = 0; page < 4; page++)
		write_at(r->file, 1, page * 4096, 4096);
	assert_int_equal(file_fsync(r->file, false), 0);
	write_at(r->file, 2, 4096, 4096);
	c.in_its_way = lock_folio_from(&r->inode->m, 3, 4);
	assert_non_null(c.in_its_way);
	c.task = world_spawn("cut", cut_main, r);
	assert_non_null(c.task);
	world_sleep_until(world_now() + NSEC_PER_SEC);
	assert_int_equal(inode_unwritten_bytes(r->inode), 0);
	assert_int_equal(store_size(r->store), 16384);
	return c;
}

static void end_cut(struct cut *c)
{
	put_locked(c->r->inode->m.cache, c->in_its_way);
	world_join(c->task);
	assert_int_equal(store_size(c->r->store), 4096);
}

static void ignore(void *ctx, u64 from, u64 to, const u8 *bytes)
{
	(void)ctx;
	(void)from;
	(void)to;
	(void)bytes;
}

struct syncing {
	struct rig *r;
	int (*sync)(struct rig *r);
	u8 media[FILE_BYTES]; /* when it had succeeded */
};

static void sync_main(void *arg)
{
	struct syncing *s = arg;

	assert_int_equal(s->sync(s->r), 0);
	disk_past(s->r->store, s->media, ignore, NULL);
}

static int sync_file(struct rig *r)
{
	return file_fsync(r->file, false);
}

static int sync_all(struct rig *r)
{
	return engine_sync(r->engine);
}

/*
 * Page 1 was 1, and safe; then it became 2, and is being cut off. After a sync it is 2 or nothing:
 * here nothing, since what was 2 is not there any more.
 */
static void sync_in_cut(struct rig *r, int (*sync)(struct rig *r))
{
	static struct syncing s;
	struct cut c = begin_cut(r);
	struct task *task;

	s = (struct syncing){ .r = r, .sync = sync };
	task = world_spawn("sync", sync_main, &s);
	assert_non_null(task);
	world_sleep_until(world_now() + NSEC_PER_SEC);
	end_cut(&c);
	world_join(task);
	for (u64 at = 0; at < 16384; at++)
		assert_int_equal(s.media[at], at < 4096);
}

static void fsync_in_cut(struct rig *r)
{
	sync_in_cut(r, sync_file);
}

static void engine_sync_in_cut(struct rig *r)
{
	sync_in_cut(r, sync_all);
}

static void test_a_sync_in_a_cut_makes_it_safe(void **state)
{
	(void)state;
	run("sluice", DISK_FILE, 0, fsync_in_cut);
	run("sluice", DISK_FILE, 0, engine_sync_in_cut);
	run("linux-7.4", DISK_BLOCKS, 0, fsync_in_cut);
	run("linux-7.4", DISK_BLOCKS, 0, engine_sync_in_cut);
}

/* A flush that was sent before the store was cut is none of the cut. */
static void flush_in_cut(struct rig *r)
{
	struct cut c = begin_cut(r);

	assert_int_equal(inode_flush_device(r->inode), 0);
	assert_false(atomic_load(&r->inode->unflushed));
	end_cut(&c);
	assert_true(atomic_load(&r->inode->unflushed));
}

static void test_a_flush_in_a_cut_is_not_enough(void **state)
{
	(void)state;
	run("sluice", DISK_FILE, 0, flush_in_cut);
}

static void count(void *ctx, u64 from, u64 to, const u8 *bytes)
{
	u64 *sum = ctx;

	sum[0]++;
	sum[1] += to - from;
	sum[2] += bytes == NULL;
}

/* What is not flushed is in danger; a process that ends leaves it as it was. */
static void saved(struct rig *r)
{
	static struct disk_saved image;
	static u8 bytes[FILE_BYTES], media[FILE_BYTES];
	u64 used = 0, sum[3] = { 0 };

	write_at(r->file, 1, 0, 8192);
	assert_int_equal(file_fsync(r->file, false), 0);
	write_at(r->file, 2, 4096, 4096);
	assert_int_equal(file_sync_range(r->file, 0, 0, FILE_WRITE | FILE_WAIT_AFTER), 0);
	assert_int_equal(file_truncate(r->file, 6000), 0);
	disk_past(r->store, media, count, sum);
	assert_int_equal(sum[0], 2);
	assert_int_equal(sum[2], 1);
	assert_int_equal(media[5000], 1);
	disk_save(r->store, NULL, &image, bytes, &used, sizeof(bytes));
	assert_int_equal(image.size, 6000);
	assert_int_equal(image.changes, 2);
	assert_int_equal(used, 4096);
	assert_int_equal(image.now[5000], 2);
	assert_int_equal(image.now[6000], 0);
	assert_int_equal(image.media[5000], 1);
	assert_int_equal(image.media[6000], 1);
	/* without memory for changes they are on the media: a disk may write what it likes */
	used = 0;
	disk_save(r->store, NULL, &image, bytes, &used, 100);
	assert_int_equal(image.media[5000], 2);
	assert_int_equal(image.now[5000], 2);
}

static void test_saved_disks(void **state)
{
	(void)state;
	run("sluice", DISK_FILE, 0, saved);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_failed_write_past_the_end_leaves_nothing),
		cmocka_unit_test(test_fsync_leaves_nothing_past_the_end),
		cmocka_unit_test(test_what_cannot_be_cut_off_stops_growth),
		cmocka_unit_test(test_a_cut_that_fails_half_way),
		cmocka_unit_test(test_a_cut_folio_needs_no_room),
		cmocka_unit_test(test_a_sync_in_a_cut_makes_it_safe),
		cmocka_unit_test(test_a_flush_in_a_cut_is_not_enough),
		cmocka_unit_test(test_saved_disks),
	};

	return cmocka_run_group_tests_name("disk", tests, NULL, NULL);
}
