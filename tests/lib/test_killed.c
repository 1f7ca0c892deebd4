// SPDX-License-Identifier: MIT
/*
 * Real kills. A child works on files through a cache with persist=PATH: several threads write,
 * append, truncate, punch holes, sync, rename, remove and reopen; at a random moment it gets
 * SIGKILL. The next child's cache recovers, and every byte of every file, read by the system, has
 * to be what was acknowledged; only what a call was at when it was killed may be as before or as
 * after. Then that child works on, on the same files.
 *
 * What was acknowledged is kept as plain bytes in memory that the parent shares with its children.
 * A thread says there what it is about to do, does it, enters what became of it, and takes the note
 * away: so a call that was killed is known, and so is one whose entering was.
 *
 * Some kills come so early that they meet the recovery.
 */
#include "rig.h"

#include "accepted.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#define THREADS     3
#define FILES       2 /* of each thread */
#define SLOTS       (THREADS * FILES + 1)
#define SHARED      (SLOTS - 1) /* all threads write to it, each its own records */
#define MOST        ACCEPTED_MOST
#define SHARED_SIZE (64 * KIB)
#define RECORD      97

struct ground {
	struct accepted_note note[THREADS];
	_Atomic unsigned version;
	_Atomic uint64_t calls, recovered, kills_at_work;
	struct accepted_slot slot[SLOTS];
};

static struct ground *ground;
static char arena[64];

static uint64_t draw(uint64_t *state, uint64_t below)
{
	*state ^= *state << 13; /* xorshift64, Marsaglia 2003 */
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state % below;
}

static const char *path_of(unsigned slot, unsigned name)
{
	static _Thread_local char path[2][128];

	snprintf(path[name % 2], sizeof(path[0]), "%s/%c%u", rig_folder, name % 2 ? 'b' : 'a',
		 slot);
	return path[name % 2];
}

/* Ends a child with a word; in a thread of its own nothing else will do. */
#define die(...)                                           \
	do {                                               \
		fprintf(stderr, "# " __VA_ARGS__);         \
		fprintf(stderr, " (line %d)\n", __LINE__); \
		_exit(3);                                  \
	} while (0)
#define must(what)                                                 \
	do {                                                       \
		if (!(what))                                       \
			die("errno %d: not so: %s", errno, #what); \
	} while (0)

/* --- what may be there */

/* Opens what there is of a slot by the system; -1: nothing, as it may be. */
static int open_slot(unsigned slot, unsigned *name)
{
	const struct accepted_slot *s = &ground->slot[slot];
	unsigned next = 0;
	const struct accepted_note *n =
		slot == SHARED ? NULL : accepted_next(ground->note, THREADS, slot, &next);
	unsigned kind = n ? n->kind : NOTHING;
	int fd;

	*name = s->name;
	fd = open(path_of(slot, s->name), O_RDONLY);
	if (fd < 0 && kind == RENAME) {
		*name = s->name + 1;
		fd = open(path_of(slot, *name), O_RDONLY);
	}
	if (fd < 0 && s->exists && kind != REMOVE && kind != CREATE)
		die("slot %u is gone", slot);
	return fd;
}

/* Compares a slot with what the system has, and takes that over. */
static void check_slot(unsigned slot)
{
	static uint8_t buf[MOST + 1];
	struct accepted_slot *s = &ground->slot[slot];
	unsigned name;
	int fd = open_slot(slot, &name);
	ssize_t n = 0;

	if (fd >= 0) {
		n = read(fd, buf, sizeof(buf));
		close(fd);
		if (!accepted_size(ground->note, THREADS, slot, s, (uint64_t)n) && s->exists)
			die("slot %u has %zd bytes, not %llu", slot, n,
			    (unsigned long long)s->size);
	}
	for (ssize_t i = 0; i < n; i++)
		if (!accepted_byte(ground->note, THREADS, slot, s, (uint64_t)i, buf[i], rig_byte))
			die("slot %u: byte %zd of %zd is %02x, not %02x", slot, i, n, buf[i],
			    (uint64_t)i < s->size ? s->bytes[i] : 0);
	s->exists = fd >= 0;
	s->name = name;
	s->size = (uint64_t)n;
	memcpy(s->bytes, buf, (size_t)n);
}

static void check_all(void)
{
	for (unsigned i = 0; i < SLOTS; i++)
		check_slot(i);
	for (unsigned i = 0; i < THREADS; i++)
		ground->note[i].kind = NOTHING;
}

/* --- work */

struct worker {
	pthread_t thread;
	struct sluice *cache;
	unsigned number;
	uint64_t random;
	struct sluice_file *file[SLOTS];
	bool direct[SLOTS];
	uint8_t buf[MOST] __attribute__((aligned(4096)));
};

static struct accepted_note *begin(struct worker *w, enum accepted_kind kind, unsigned slot,
				   uint64_t from, uint64_t to)
{
	struct accepted_note *n = &ground->note[w->number];

	n->version = 1 + atomic_fetch_add(&ground->version, 1) % 250;
	accepted_begin(n, &ground->slot[slot], kind, slot, from, to);
	return n;
}

static void end(struct worker *w)
{
	struct accepted_note *n = &ground->note[w->number];

	accepted_enter(n, &ground->slot[n->slot], w->buf);
	atomic_store(&n->kind, NOTHING);
	atomic_fetch_add(&ground->calls, 1);
}

static void open_file(struct worker *w, unsigned slot)
{
	struct accepted_slot *s = &ground->slot[slot];
	bool direct = slot != SHARED && draw(&w->random, 8) == 0;
	int flags = O_RDWR | (direct ? O_DIRECT : 0);

	if (!s->exists) {
		begin(w, CREATE, slot, 0, 0);
		s->size = 0;
		flags |= O_CREAT | O_EXCL;
	}
	must(!sluice_open(w->cache, path_of(slot, s->name), flags, 0644, &w->file[slot]));
	s->exists = 1;
	w->direct[slot] = direct;
	end(w);
}

static void do_write(struct worker *w, unsigned slot)
{
	static const unsigned flags[16] = { [14] = SLUICE_DONTCACHE, [15] = SLUICE_DSYNC };
	uint64_t from = draw(&w->random, MOST - 4096), most = MOST - from, length;
	struct accepted_note *n;
	ssize_t done;

	if (most > 48 * KIB)
		most = 48 * KIB;
	length = 1 + draw(&w->random, draw(&w->random, 2) ? most : 900);
	if (slot == SHARED) {
		from = (draw(&w->random, SHARED_SIZE / RECORD / THREADS) * THREADS + w->number) *
		       RECORD;
		length = RECORD;
	}
	if (w->direct[slot]) {
		from = from / 4096 * 4096;
		length = 4096 + length / 4096 * 4096;
		if (from + length > MOST)
			length = MOST - from;
	}
	n = begin(w, WRITE, slot, from, from + length);
	for (uint64_t i = 0; i < length; i++)
		w->buf[i] = rig_byte(from + i, n->version);
	done = sluice_pwrite(w->file[slot], w->buf, length, from,
			     w->direct[slot] ? 0 : flags[draw(&w->random, 16)]);
	must(done == (ssize_t)(length));
	end(w);
}

static void do_append(struct worker *w, unsigned slot)
{
	uint64_t size = ground->slot[slot].size, length = 1 + draw(&w->random, 6000), at;
	struct iovec v = { w->buf, length };
	struct accepted_note *n;

	if (w->direct[slot] || size + length > MOST)
		return;
	n = begin(w, APPEND, slot, size, size + length);
	for (uint64_t i = 0; i < length; i++)
		w->buf[i] = rig_byte(size + i, n->version);
	must(sluice_append(w->file[slot], &v, 1, 0, &at) == (ssize_t)(length));
	must(at == size);
	end(w);
}

static void do_truncate(struct worker *w, unsigned slot)
{
	struct accepted_slot *s = &ground->slot[slot];
	uint64_t size = draw(&w->random, draw(&w->random, 4) ? MOST : s->size + 1);

	begin(w, TRUNCATE, slot, s->size, size);
	must(sluice_truncate(w->file[slot], size) == (ssize_t)(0));
	end(w);
}

static void do_zero(struct worker *w, unsigned slot)
{
	uint64_t from = draw(&w->random, MOST), to = from + 1 + draw(&w->random, 40 * KIB);
	int mode = SLUICE_KEEP_SIZE | (draw(&w->random, 3) ? SLUICE_PUNCH_HOLE : SLUICE_ZERO_RANGE);

	begin(w, ZERO, slot, from, to);
	must(sluice_fallocate(w->file[slot], mode, from, to - from) == (ssize_t)(0));
	end(w);
}

static void do_rename(struct worker *w, unsigned slot)
{
	struct accepted_slot *s = &ground->slot[slot];

	begin(w, RENAME, slot, 0, 0);
	must(rename(path_of(slot, s->name), path_of(slot, s->name + 1)) == (ssize_t)(0));
	s->name++;
	end(w);
}

/* Another file takes its name while it is open, and perhaps its number later. */
static void do_remove(struct worker *w, unsigned slot)
{
	struct accepted_slot *s = &ground->slot[slot];

	begin(w, REMOVE, slot, 0, 0);
	must(unlink(path_of(slot, s->name)) == (ssize_t)(0));
	s->exists = 0;
	s->size = 0;
	end(w);
	memset(w->buf, 0xee, 5000);
	must(w->direct[slot] || sluice_pwrite(w->file[slot], w->buf, 5000, 0, 0) == 5000);
	must(sluice_close(w->file[slot]) == (ssize_t)(0));
	open_file(w, slot);
}

static void do_other(struct worker *w, unsigned slot)
{
	struct sluice_file *f = w->file[slot];
	struct accepted_slot *s = &ground->slot[slot];

	switch (draw(&w->random, 6)) {
	case 0:
		must(sluice_fsync(f) == (ssize_t)(0));
		break;
	case 1:
		must(sluice_close(f) == (ssize_t)(0));
		open_file(w, slot);
		break;
	case 2:
		sluice_advise(f, draw(&w->random, MOST), 30000, SLUICE_DONTNEED);
		break;
	case 3:
		sluice_sync_file_range(f, draw(&w->random, MOST), 50000, SLUICE_WRITE);
		break;
	case 4:
		if (slot == SHARED || w->direct[slot])
			break;
		must(sluice_pread(f, w->buf, MOST, 0, 0) == (ssize_t)(s->size));
		must(!memcmp(w->buf, s->bytes, s->size));
		break;
	case 5:
		if (!draw(&w->random, 4))
			sluice_resize(w->cache, draw(&w->random, 2) ? 16 * MIB : 20 * MIB);
		break;
	}
}

static void *work(void *arg)
{
	struct worker *w = arg;

	for (unsigned i = 0; i < FILES; i++)
		open_file(w, w->number * FILES + i);
	must(sluice_open(w->cache, path_of(SHARED, 0), O_RDWR, 0, &w->file[SHARED]) ==
	     (ssize_t)(0));
	for (;;) {
		unsigned slot = w->number * FILES + (unsigned)draw(&w->random, FILES);
		uint64_t what = draw(&w->random, 100);

		if (what < 40)
			do_write(w, slot);
		else if (what < 55)
			do_write(w, SHARED);
		else if (what < 63)
			do_append(w, slot);
		else if (what < 72)
			do_truncate(w, slot);
		else if (what < 80)
			do_zero(w, slot);
		else if (what < 83)
			do_rename(w, slot);
		else if (what < 85)
			do_remove(w, slot);
		else
			do_other(w, draw(&w->random, 10) ? slot : SHARED);
	}
	return NULL;
}

static void count(void *ctx, const struct sluice_recovered *r)
{
	(void)ctx;
	/* what a thread was removing may have lost its name to us, and nothing else may */
	if (r->how == SLUICE_RECOVERED_WRITTEN)
		atomic_fetch_add(&ground->recovered, r->bytes);
}

/* Until it is killed. */
static void live(uint64_t seed)
{
	static struct worker worker[THREADS];
	char persist[128];
	const char *settings[] = { "memory=16M",
				   "max_memory=24M",
				   seed % 4 ? "vm.dirty_writeback_centisecs=2"
					    : "vm.dirty_writeback_centisecs=100",
				   "vm.dirty_expire_centisecs=4",
				   seed % 2 ? "block_bytes=512" : "block_bytes=4096",
				   seed % 3 ? "policy=sluice" : "accounting=folio",
				   seed % 5 ? "vm.dirty_bytes=8M" : "vm.dirty_bytes=400K",
				   seed % 7 ? "io_engine=auto" : "io_engine=threads",
				   persist,
				   NULL };
	struct sluice *cache;

	snprintf(persist, sizeof(persist), "persist=%s", arena);
	cache = rig_cache(settings);
	sluice_recovered(cache, count, NULL);
	check_all();
	atomic_fetch_add(&ground->kills_at_work, 1);
	for (unsigned i = 0; i < THREADS; i++) {
		worker[i].cache = cache;
		worker[i].number = i;
		worker[i].random = seed * 1000 + i + 1;
		pthread_create(&worker[i].thread, NULL, work, &worker[i]);
	}
	pause();
}

/* A child's failed assertion jumps; here it ends the child. */
static pid_t begin_life(uint64_t seed)
{
	pid_t child = fork();

	assert_true(child >= 0);
	if (!child) {
		signal(SIGABRT, SIG_DFL);
		live(seed);
		abort();
	}
	return child;
}

static void wait_ns(long ns)
{
	nanosleep(&(struct timespec){ .tv_nsec = ns }, NULL);
}

/* Until the child has done so many calls more: on a busy machine that may take it long. */
static void wait_calls(pid_t child, uint64_t calls)
{
	uint64_t enough = ground->calls + calls;
	siginfo_t ended = { .si_pid = 0 };

	while (ground->calls < enough && !ended.si_pid) {
		wait_ns(100000);
		assert_int_equal(waitid(P_PID, (id_t)child, &ended, WEXITED | WNOHANG | WNOWAIT),
				 0);
	}
}

static void set_up(void)
{
	struct accepted_slot *s = &ground->slot[SHARED];
	int fd = open(path_of(SHARED, 0), O_RDWR | O_CREAT, 0644);

	assert_true(fd >= 0 && !ftruncate(fd, SHARED_SIZE));
	close(fd);
	s->exists = 1;
	s->size = SHARED_SIZE;
}

/* The last one ends by itself, and the files must be whole then, and the arena gone. */
static void last_life(void)
{
	char persist[128];
	struct sluice *cache;

	snprintf(persist, sizeof(persist), "persist=%s", arena);
	cache = rig_cache(GIVEN("memory=16M", persist));
	check_all();
	assert_int_equal(sluice_destroy(cache, NULL, NULL), 0);
	check_all();
	assert_int_equal(access(arena, F_OK), -1);
}

static void nothing_accepted_is_lost(void **state)
{
	unsigned rounds = getenv("SLUICE_SOAK") ? 1000 : 25;
	uint64_t random = 88172645463325252ull;

	(void)state;
	if (access("/dev/shm", W_OK)) {
		print_message("# skip: there is no /dev/shm\n");
		skip();
	}
	set_up();
	for (unsigned i = 0; i < rounds; i++) {
		pid_t child = begin_life(i + 1);
		int status;

		if (draw(&random, 5))
			wait_calls(child, 1 + draw(&random, 150));
		else
			wait_ns((long)draw(&random, 20000000));
		kill(child, SIGKILL);
		assert_int_equal(waitpid(child, &status, 0), child);
		if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
			fail_msg("round %u: the child ended by itself: %x", i, status);
	}
	last_life();
	print_message("# %u kills, %llu of them at work, %llu calls, %llu bytes recovered\n",
		      rounds, (unsigned long long)ground->kills_at_work,
		      (unsigned long long)ground->calls, (unsigned long long)ground->recovered);
	assert_true(ground->calls > rounds && ground->recovered);
}

static int begin_test(void **state)
{
	ground = mmap(NULL, sizeof(*ground), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	snprintf(arena, sizeof(arena), "/dev/shm/sluice-killed-%ld", (long)getpid());
	return ground == MAP_FAILED ? -1 : rig_begin(state);
}

static int end_test(void **state)
{
	char command[256];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s' %s %s.recovered", rig_folder, arena, arena);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nothing_accepted_is_lost, begin_test, end_test),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
