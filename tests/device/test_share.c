// SPDX-License-Identifier: MIT
/* A server shared equally: when each request ends, whoever comes and goes meanwhile. */
#include "device/model.h"
#include "device/share.h"
#include "rig.h"

#define US NSEC_PER_USEC

static u64 began_ns, ended_ns[8];
static unsigned ended;
static struct device_request requests[8];
static unsigned order[8];

static void note_end(struct share *s, struct device_request *r, u64 now)
{
	(void)s;
	assert_int_equal(now, world_now());
	order[ended++] = (unsigned)(r - requests);
	ended_ns[r - requests] = now - began_ns;
}

static void begin(struct share *s)
{
	began_ns = world_now();
	ended = 0;
	memset(requests, 0, sizeof(requests));
	memset(ended_ns, 0, sizeof(ended_ns));
	share_init(s, note_end);
}

static void add(struct share *s, unsigned i, u64 work_us)
{
	share_add(s, &requests[i], (fine_ns)(work_us * US) << FINE_BITS, world_now());
}

static void at_us(u64 us)
{
	world_sleep_until(began_ns + us * US);
}

static void alone_it_takes_its_work(void *arg)
{
	struct share s;

	(void)arg;
	begin(&s);
	add(&s, 0, 100);
	at_us(1000);
	assert_int_equal(ended_ns[0], 100 * US);
	add(&s, 1, 50); /* the idle time is nobody's */
	at_us(2000);
	assert_int_equal(ended_ns[1], 1050 * US);
	assert_int_equal(s.requests, 0);
}

/* Three together go on at a third of the speed, and the longer ones faster when one has gone. */
static void all_advance_alike(void *arg)
{
	struct share s;

	(void)arg;
	begin(&s);
	add(&s, 0, 100);
	add(&s, 1, 10);
	add(&s, 2, 50);
	at_us(1000);
	assert_int_equal(ended_ns[1], 30 * US);
	assert_int_equal(ended_ns[2], (30 + 2 * 40) * US);
	assert_int_equal(ended_ns[0], (30 + 2 * 40 + 50) * US);
}

/* A small one that comes late waits for how many there are, not for how much. */
static void who_comes_late_is_not_last(void *arg)
{
	struct share s;

	(void)arg;
	begin(&s);
	add(&s, 0, 1000);
	at_us(500);
	add(&s, 1, 10);
	at_us(5000);
	assert_int_equal(ended_ns[1], 520 * US);
	assert_int_equal(ended_ns[0], 1010 * US);
}

/* Equal ones end at once, in the order they came. */
static void equal_ones_end_in_order(void *arg)
{
	struct share s;

	(void)arg;
	begin(&s);
	for (unsigned i = 0; i < 4; i++)
		add(&s, i, 25);
	at_us(1000);
	assert_int_equal(ended, 4);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(order[i], i);
		assert_int_equal(ended_ns[i], 100 * US);
	}
}

/* Nothing is lost to rounding: three thirds of a nanosecond are one. */
static void fractions_add_up(void *arg)
{
	struct share s;

	(void)arg;
	begin(&s);
	for (unsigned i = 0; i < 3; i++)
		share_add(&s, &requests[i], fine_period(3e9), world_now());
	at_us(1);
	assert_int_equal(ended, 3);
	assert_in_range(ended_ns[0], 1, 2);
}

#define IN_A_WORLD(name)                      \
	static void test_##name(void **state) \
	{                                     \
		(void)state;                  \
		rig_run(name, NULL);          \
	}

IN_A_WORLD(alone_it_takes_its_work)
IN_A_WORLD(all_advance_alike)
IN_A_WORLD(who_comes_late_is_not_last)
IN_A_WORLD(equal_ones_end_in_order)
IN_A_WORLD(fractions_add_up)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_alone_it_takes_its_work),
		cmocka_unit_test(test_all_advance_alike),
		cmocka_unit_test(test_who_comes_late_is_not_last),
		cmocka_unit_test(test_equal_ones_end_in_order),
		cmocka_unit_test(test_fractions_add_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
