// SPDX-License-Identifier: MIT
/* Mapped files: what faults, what that charges and writes. Linux writeback reference, 3.1. */
#include "file/map.h"
#include "rig.h"

/* Loaded as P2 does: folios of 256 KiB from page 192 on. */
static struct file *loaded(struct rig *r, u64 size)
{
	struct file *f = rig_laid_out(r, 4096, size);

	for (u64 at = 0; at < size; at += MIB)
		rig_expect_bytes(f, at, MIB, 1);
	return f;
}

static struct file_map *map(struct file *f, u64 offset, u64 length)
{
	struct file_map *m;

	assert_int_equal(file_map(f, offset, length, &m), 0);
	return m;
}

static void store(struct file_map *m, u64 offset, u64 length, u8 version)
{
	u8 *buf = malloc(length);

	for (u64 i = 0; i < length; i++)
		buf[i] = rig_byte(offset + i, version);
	assert_int_equal(file_map_store(m, buf, length, offset), length);
	free(buf);
}

static void expect_loaded(struct file_map *m, u64 offset, u64 length, u8 version)
{
	u8 *buf = malloc(length);

	assert_int_equal(file_map_load(m, buf, length, offset), length);
	for (u64 i = 0; i < length; i++)
		assert_int_equal(buf[i], rig_byte(offset + i, version));
	free(buf);
}

static u64 charged(struct rig *r)
{
	return ledger_total(&r->e->cache.ledger, TOTAL_FOLIO_DIRTIED);
}

/* Three stores into one folio of 64 pages are one charge of 64, until it is written, whole. */
RIG_TEST(test_a_folio_is_charged_and_written_whole)
{
	struct rig *r = rig_open("linux-6.18");
	struct file *f = loaded(r, 4 * MIB);
	struct file_map *m = map(f, 0, 4 * MIB);
	u32 before = r->logged;

	store(m, 256 * 4096, 100, 2);
	store(m, 256 * 4096, 100, 2);
	store(m, 300 * 4096 + 4090, 6, 2);
	assert_int_equal(charged(r), 64);
	assert_int_equal(ledger_level(&r->e->cache.ledger, LEVEL_FOLIO_DIRTY), 64);
	assert_int_equal(ledger_level(&r->e->cache.ledger, LEVEL_DEBT), 64);
	assert_int_equal(file_map_sync(m, 0, 0), 0);
	assert_int_equal(r->logged, before + 1);
	assert_int_equal(r->log[before].op, IO_WRITE);
	assert_int_equal(r->log[before].offset, 256 * 4096);
	assert_int_equal(r->log[before].length, 256 * KIB);
	rig_expect_stored(f->inode, 256 * 4096, 100, 2);
	rig_expect_stored(f->inode, 300 * 4096 + 4090, 6, 2);
	rig_expect_stored(f->inode, 256 * 4096 + 100, 1000, 1);
	/* write-out took the page away: the next store faults, and is charged, again */
	store(m, 256 * 4096, 100, 3);
	assert_int_equal(charged(r), 128);
	file_unmap(m);
	rig_end(r, f);
}

/* A store makes all blocks dirty where pages are charged, too (3.2). */
RIG_TEST(test_page_accounting_writes_it_whole_too)
{
	struct rig *r = rig_new("linux-7.4", 64 * MIB);
	struct file_map *m;
	struct file *f;
	u32 before;

	r->config.policy.accounting = ACCOUNT_PAGE;
	rig_start(r);
	f = loaded(r, 4 * MIB);
	m = map(f, 0, 4 * MIB);
	before = r->logged;
	store(m, 256 * 4096, 4096, 2);
	assert_int_equal(ledger_level(&r->e->cache.ledger, LEVEL_DEBT), 64);
	assert_int_equal(file_map_sync(m, 0, 0), 0);
	assert_int_equal(r->log[before].length, 256 * KIB);
	file_unmap(m);
	rig_end(r, f);
}

/* Where pages are what counts, a store owes its page. */
RIG_TEST(test_a_page_is_charged_and_written_alone)
{
	struct rig *r = rig_open("sluice");
	struct file *f = loaded(r, 4 * MIB);
	struct file_map *m = map(f, MIB, MIB);
	u32 before = r->logged;

	store(m, MIB + 5 * 4096, 4096, 2);
	store(m, MIB + 9 * 4096 + 1, 1, 2);
	assert_int_equal(ledger_level(&r->e->cache.ledger, LEVEL_DEBT), 2);
	assert_int_equal(file_map_sync(m, MIB, 8 * 4096), 0);
	assert_int_equal(r->logged, before + 2); /* all that is dirty of the folio goes with it */
	assert_int_equal(r->log[before].offset, MIB + 5 * 4096);
	assert_int_equal(r->log[before].length, 4096);
	assert_int_equal(r->log[before + 1].offset, MIB + 9 * 4096);
	file_unmap(m);
	rig_end(r, f);
}

/* What one stores all others load and read, whoever mapped it first. */
RIG_TEST(test_maps_and_calls_see_each_other)
{
	struct rig *r = rig_open("linux-6.18");
	struct file *f = loaded(r, 2 * MIB);
	struct file_map *a = map(f, 0, 2 * MIB), *b = map(f, MIB, MIB);

	expect_loaded(b, MIB, 64 * KIB, 1);
	store(a, MIB + 4000, 5000, 2);
	expect_loaded(b, MIB + 4000, 5000, 2);
	rig_expect_bytes(f, MIB + 4000, 5000, 2);
	rig_write(f, MIB + 4000, 5000, 3);
	expect_loaded(a, MIB + 4000, 5000, 3);
	assert_int_equal(charged(r), 64);
	/* each of them owes again after write-out */
	assert_int_equal(file_map_sync(b, 0, 0), 0);
	store(b, MIB, 1, 4);
	store(a, MIB + 4096, 1, 4);
	assert_int_equal(charged(r), 128);
	file_unmap(a);
	file_unmap(b);
	rig_end(r, f);
}

/* Pages read for one load at byte 4 MiB + 1. */
static u64 read_for_a_load(enum file_advice advice, u64 *from)
{
	struct rig *r = rig_open("linux-6.18");
	struct file *f = rig_laid_out(r, 4096, 8 * MIB);
	struct file_map *m = map(f, 0, 8 * MIB);
	u64 bytes = 0;

	*from = ~0ull;
	assert_int_equal(file_map_advise(m, advice), 0);
	if (advice != FILE_ADV_NORMAL)
		assert_int_equal(file_advise(f, 0, 0, advice), 0);
	expect_loaded(m, 4 * MIB + 1, 1, 1);
	file_unmap(m);
	for (u32 i = 0; i < r->logged; i++) {
		*from = min_u64(*from, r->log[i].offset / 4096);
		bytes += r->log[i].length;
	}
	rig_end(r, f);
	return bytes / 4096;
}

RIG_TEST(test_a_miss_reads_around)
{
	u64 from;

	assert_int_equal(read_for_a_load(FILE_ADV_NORMAL, &from), 32);
	assert_int_equal(from, 1024 - 16);
	assert_int_equal(read_for_a_load(FILE_ADV_RANDOM, &from), 1);
	assert_int_equal(from, 1024);
	assert_int_equal(read_for_a_load(FILE_ADV_SEQUENTIAL, &from), 64);
	assert_int_equal(from, 1024);
}

/* Misses that are never followed by hits end the reading around, hits begin it again. */
RIG_TEST(test_reading_around_is_given_up)
{
	struct rig *r = rig_new("linux-6.18", 256 * MIB);
	struct file_map *m;
	struct file *f;
	u32 before;

	rig_start(r);
	f = rig_laid_out(r, 4096, 64 * MIB);
	m = map(f, 0, 64 * MIB);
	for (u64 i = 0; i < 110; i++)
		store(m, i * 512 * KIB + 256 * KIB, 1, 2);
	before = r->logged;
	store(m, 120 * 512 * KIB, 1, 2);
	assert_int_equal(r->logged, before + 1);
	assert_int_equal(r->log[before].length, 4096);
	for (u64 i = 0; i < 20; i++) /* each maps the sixteen pages around */
		expect_loaded(m, i * 512 * KIB + 192 * KIB, 1, 1);
	before = r->logged;
	expect_loaded(m, 121 * 512 * KIB, 1, 1);
	assert_int_equal(r->log[before].length, 128 * KIB);
	file_unmap(m);
	rig_end(r, f);
}

RIG_TEST(test_what_goes_is_unmapped)
{
	struct rig *r = rig_open("linux-6.18");
	struct file *f = loaded(r, 4 * MIB);
	struct file_map *m = map(f, 0, 4 * MIB);
	char byte = 1;

	store(m, 2 * MIB, 1, 2);
	expect_loaded(m, 3 * MIB, 1, 1);
	assert_int_equal(file_fsync(f, true), 0);
	assert_int_equal(file_advise(f, 0, 0, FILE_ADV_DONTNEED), 0);
	assert_int_equal(r->e->cache.ledger.level[LEVEL_PINNED], 0);
	expect_loaded(m, 2 * MIB, 1, 2);
	assert_int_equal(file_truncate(f, MIB), 0);
	assert_int_equal(file_map_load(m, &byte, 1, 2 * MIB), -EFAULT);
	assert_int_equal(file_map_store(m, &byte, 1, 2 * MIB), -EFAULT);
	assert_int_equal(file_truncate(f, 4 * MIB), 0);
	assert_int_equal(file_map_load(m, &byte, 1, 2 * MIB), 1);
	assert_int_equal(byte, 0);
	/* a hole under what was mapped for stores: the next one owes again */
	store(m, 0, 1, 2);
	assert_int_equal(file_fallocate(f, FILE_PUNCH_HOLE | FILE_KEEP_SIZE, 0, 64 * KIB), 0);
	store(m, 0, 1, 3);
	assert_int_equal(file_fsync(f, true), 0);
	rig_expect_stored(f->inode, 0, 1, 3);
	file_unmap(m);
	rig_end(r, f);
}

RIG_TEST(test_what_cannot_be)
{
	struct rig *r = rig_open("linux-6.18");
	struct file *f = rig_laid_out(r, 4096, MIB);
	struct file_map *m;
	char byte = 1;

	assert_int_equal(file_map(f, 0, 0, &m), -EINVAL);
	assert_int_equal(file_map(f, 0, MIB + 1, &m), -EINVAL);
	assert_int_equal(file_map(f, ~0ull, 2, &m), -EINVAL);
	m = map(f, 64 * KIB, 64 * KIB);
	assert_int_equal(file_map_load(m, &byte, 1, 0), -EFAULT);
	assert_int_equal(file_map_store(m, &byte, 1, 128 * KIB), -EFAULT);
	assert_int_equal(file_map_advise(m, FILE_ADV_DONTNEED), -EINVAL);
	r->read_error = -EIO;
	r->failures = 10;
	assert_int_equal(file_map_advise(m, FILE_ADV_RANDOM), 0);
	assert_int_equal(file_map_load(m, &byte, 1, 64 * KIB), -EIO);
	r->failures = 0;
	expect_loaded(m, 64 * KIB, 1, 1);
	file_unmap(m);
	rig_end(r, f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_folio_is_charged_and_written_whole),
		cmocka_unit_test(test_page_accounting_writes_it_whole_too),
		cmocka_unit_test(test_a_page_is_charged_and_written_alone),
		cmocka_unit_test(test_maps_and_calls_see_each_other),
		cmocka_unit_test(test_a_miss_reads_around),
		cmocka_unit_test(test_reading_around_is_given_up),
		cmocka_unit_test(test_what_goes_is_unmapped),
		cmocka_unit_test(test_what_cannot_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
