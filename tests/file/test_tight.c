/* SPDX-License-Identifier: MIT */
/* Memory that is smaller than what is asked of it: slow, but nobody waits for ever. */
#include "fault_rig.h"

#define READERS 3

static void will_need(void *arg)
{
	struct rig *r = arg;
	struct file *f;

	assert_int_equal(file_open(r->inode, 0, &f), 0);
	assert_int_equal(file_advise(f, 0, 0, FILE_ADV_WILLNEED), 0);
	file_close(f);
}

/* Each asks for three times the memory there is, which is all in folios nobody has sent for yet. */
static void read_too_much(struct rig *r)
{
	struct task *t[READERS];

	assert_int_equal(inode_lay_out(r->inode, 3 * r->memory_pages * PAGE_SIZE), 0);
	for (unsigned i = 0; i < READERS; i++) {
		t[i] = world_spawn("reader", will_need, r);
		assert_non_null(t[i]);
	}
	for (unsigned i = 0; i < READERS; i++)
		world_join(t[i]);
	rig_expect_sound(r);
	rig_expect(r, 0, 0, 64 * PAGE_SIZE);
}

static void test_readers_larger_than_memory(void **state)
{
	struct rig r = rig_init("sluice", read_too_much);

	(void)state;
	r.memory_pages = 64;
	r.read_ahead_kb = 4096;
	rig_run(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_readers_larger_than_memory),
	};

	return cmocka_run_group_tests_name("tight", tests, NULL, NULL);
}
