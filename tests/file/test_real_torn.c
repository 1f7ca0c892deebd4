/* SPDX-License-Identifier: MIT */
/*
 * Reads without a lock never mix two states of a page. The reader's buffer faults when the first
 * bytes are on their way into it; the page is written anew then, by another thread, before the
 * reader goes on. Its first bytes are old, the rest is new: it has to notice, and read again.
 */
#include "real_rig.h"
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>

static struct file *file;
static u8 *buffer; /* two pages; nothing may be stored there before the fault */
static _Atomic u32 faulted, written;

static void on_fault(int signal, siginfo_t *info, void *context)
{
	u8 *at = info->si_addr;

	(void)signal;
	(void)context;
	if (at < buffer || at >= buffer + 2 * PAGE_SIZE)
		_exit(139); /* somebody's mistake */
	atomic_store(&faulted, 1);
	while (!atomic_load(&written))
		sched_yield();
	mprotect(buffer, 2 * PAGE_SIZE, PROT_READ | PROT_WRITE);
}

static void write_on_fault(void *arg)
{
	static u8 bytes[2 * PAGE_SIZE];

	(void)arg;
	memset(bytes, 'n', sizeof(bytes));
	while (!atomic_load(&faulted))
		sched_yield();
	assert_int_equal(file_pwrite(file, bytes, sizeof(bytes), 0), sizeof(bytes));
	atomic_store(&written, 1);
}

static void read_while_written(u64 length)
{
	struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO }, before;
	static u8 bytes[2 * PAGE_SIZE];
	struct task *writer;
	struct real r;

	real_start(&r, (struct path_config){ 0 }, 16 * MIB);
	file = real_open(&r, "torn", O_RDWR | O_CREAT);
	memset(bytes, 'o', sizeof(bytes));
	assert_int_equal(file_pwrite(file, bytes, sizeof(bytes), 0), sizeof(bytes));
	buffer = mmap(NULL, 2 * PAGE_SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(buffer, MAP_FAILED);
	assert_int_equal(sigaction(SIGSEGV, &action, &before), 0);
	atomic_store(&faulted, 0);
	atomic_store(&written, 0);
	writer = world_spawn("writer", write_on_fault, NULL);
	assert_non_null(writer);
	assert_int_equal(file_pread(file, buffer, length, 0), length);
	world_join(writer);
	sigaction(SIGSEGV, &before, NULL);
	for (u64 i = 0; i < length; i++)
		assert_int_equal(buffer[i], 'n');
	munmap(buffer, 2 * PAGE_SIZE);
	path_close(file);
	real_end(&r);
}

static void test_within_a_page(void **state)
{
	(void)state;
	read_while_written(PAGE_SIZE);
}

static void test_over_pages(void **state)
{
	(void)state;
	read_while_written(2 * PAGE_SIZE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_within_a_page),
		cmocka_unit_test(test_over_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
