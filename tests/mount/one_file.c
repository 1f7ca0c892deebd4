// SPDX-License-Identifier: MIT
/*
 * One file against an array of bytes: random operations of all kinds that change a file, on several
 * descriptors, a shared mapping that stays, and copies of it that other processes look at. After
 * each one that returns data, and of the whole file now and then, the bytes must be those of the
 * array.
 *
 *	one_file PATH SEED COUNT [nomap]
 *
 * Says nothing and ends with 0, or says what differed after which operations, and ends with 1.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST    (1u << 20) /* bytes of the file */
#define PAGE    4096u
#define HISTORY 64
#define WHOLE   4096 /* operations between two looks at everything */

static const char *path;
static uint64_t state;
static uint8_t model[MOST], found[MOST];
static unsigned size;
static int fds[3] = { -1, -1, -1 }; /* plain, appending, past the kernel's cache */
static uint8_t *map;
static bool maps;
static char history[HISTORY][100];
static unsigned long done;

/* xorshift64* (Marsaglia, Vigna) */
static uint64_t draw(void)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return state * 0x2545f4914f6cdd1dull;
}

static unsigned below(unsigned n)
{
	return n ? (unsigned)((draw() >> 32) % n) : 0;
}

__attribute__((noreturn, format(printf, 1, 2))) static void fail(const char *format, ...)
{
	va_list args;

	for (unsigned long i = done > HISTORY ? done - HISTORY : 0; i <= done; i++)
		printf("%lu: %s\n", i, history[i % HISTORY]);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf(" (errno %s)\n", strerror(errno));
	exit(1);
}

__attribute__((format(printf, 1, 2))) static void note(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(history[done % HISTORY], sizeof(history[0]), format, args);
	va_end(args);
}

static void must(bool good, const char *what)
{
	if (!good)
		fail("%s failed", what);
}

static void same(const uint8_t *bytes, unsigned offset, unsigned length, const char *how)
{
	if (!memcmp(bytes, model + offset, length))
		return;
	for (unsigned i = 0; i < length; i++)
		if (bytes[i] != model[offset + i])
			fail("%s: byte %u of %u..%u is %u, not %u (size %u)", how, offset + i,
			     offset, offset + length, bytes[i], model[offset + i], size);
}

/* Where things happen: edges of pages and of the file more often than by chance. */
static unsigned place(void)
{
	unsigned at;

	switch (below(4)) {
	case 0:
		return below(MOST / PAGE) * PAGE;
	case 1:
		at = size + below(65) - 32;
		return at < MOST ? at : 0;
	default:
		return below(below(2) ? MOST : MOST / 8);
	}
}

static unsigned extent(unsigned offset)
{
	static const unsigned most[] = { 16, 600, PAGE, 5 * PAGE, 40 * PAGE };
	unsigned n = 1 + below(most[below(5)]);

	return n < MOST - offset ? n : MOST - offset;
}

static void open_all(void)
{
	fds[0] = open(path, O_RDWR | O_CREAT, 0600);
	fds[1] = open(path, O_RDWR | O_APPEND);
	fds[2] = open(path, O_RDWR | O_DIRECT);
	if (fds[2] < 0 && errno == EINVAL)
		fds[2] = open(path, O_RDWR);
	must(fds[0] >= 0 && fds[1] >= 0 && fds[2] >= 0, "open");
	if (maps) {
		map = mmap(NULL, MOST, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
		must(map != MAP_FAILED, "mmap");
	}
}

static void close_all(void)
{
	if (maps)
		munmap(map, MOST);
	for (int i = 0; i < 3; i++)
		must(!close(fds[i]), "close");
}

static void fill(uint8_t *at, unsigned length)
{
	for (unsigned i = 0; i < length; i++)
		at[i] = (uint8_t)(done * 7 + i * 13 + (i >> 8));
}

static void grow(unsigned to)
{
	if (to <= size)
		return;
	memset(model + size, 0, to - size);
	size = to;
}

/* Aligned, as O_DIRECT wants it on a plain directory. */
static void align(unsigned *offset, unsigned *length)
{
	*offset -= *offset % PAGE;
	*length += PAGE - *length % PAGE;
	if (*offset + *length > MOST)
		*length = MOST - *offset;
}

static void op_write(void)
{
	static uint8_t buf[MOST] __attribute__((aligned(4096)));
	unsigned offset = place(), length = extent(offset), which = below(4), flags = 0;
	struct iovec v;

	if (which == 2)
		align(&offset, &length);
	else if (which == 3) {
		which = 0;
		flags = RWF_DSYNC;
	}
	if (which == 1)
		offset = size;
	if (length > MOST - offset)
		length = MOST - offset;
	if (!length)
		return;
	note("write %u+%u by %u", offset, length, which);
	fill(buf, length);
	v = (struct iovec){ buf, length };
	must(pwritev2(fds[which], &v, 1, offset, (int)flags) == (ssize_t)length, "write");
	grow(offset);
	memcpy(model + offset, buf, length);
	if (offset + length > size)
		size = offset + length;
}

static void op_read(void)
{
	static uint8_t buf[MOST + PAGE] __attribute__((aligned(4096)));
	unsigned offset = place(), length = extent(offset), which = below(3), wanted;
	ssize_t n;

	if (which == 2)
		align(&offset, &length);
	note("read %u+%u by %u", offset, length, which);
	wanted = offset >= size ? 0 : length < size - offset ? length : size - offset;
	n = pread(fds[which], buf, length, offset);
	if (n != (ssize_t)wanted)
		fail("read gave %zd, not %u", n, wanted);
	same(buf, offset, wanted, "read");
}

static void op_map_write(void)
{
	unsigned offset = place(), length = extent(offset);

	if (!maps || offset >= size)
		return;
	if (length > size - offset)
		length = size - offset;
	note("write %u+%u in map", offset, length);
	fill(model + offset, length);
	memcpy(map + offset, model + offset, length);
}

static void op_map_read(void)
{
	unsigned offset = place(), length = extent(offset), end;

	if (!maps || offset >= size)
		return;
	if (length > size - offset)
		length = size - offset;
	note("read %u+%u in map", offset, length);
	same(map + offset, offset, length, "map");
	end = (size + PAGE - 1) / PAGE * PAGE;
	for (unsigned i = size; offset + length == size && i < end; i++)
		if (map[i])
			fail("map: byte %u past the end of %u is %u", i, size, map[i]);
}

static void op_truncate(void)
{
	unsigned to = below(3) ? place() : size;

	note("truncate %u", to);
	must(!(below(2) ? ftruncate(fds[0], to) : truncate(path, to)), "truncate");
	grow(to);
	size = to;
}

static void op_allocate(void)
{
	static const int modes[] = { 0,
				     FALLOC_FL_KEEP_SIZE,
				     FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				     FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				     FALLOC_FL_ZERO_RANGE,
				     FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE };
	unsigned offset = place(), length = extent(offset), end = offset + length;
	int mode = modes[below(6)];

	note("fallocate %d %u+%u", mode, offset, length);
	if (fallocate(fds[0], mode, offset, length)) {
		must(errno == EOPNOTSUPP, "fallocate");
		return;
	}
	if (!(mode & FALLOC_FL_KEEP_SIZE))
		grow(end);
	if (end > size)
		end = size;
	if (mode & ~FALLOC_FL_KEEP_SIZE && offset < end)
		memset(model + offset, 0, end - offset);
}

static void op_copy(void)
{
	unsigned from = place(), to = place(), length = extent(from > to ? from : to);
	off_t in = from, out = to;
	ssize_t n;

	if (from >= size)
		return;
	if (length > size - from)
		length = size - from;
	if (from < to + length && to < from + length)
		return; /* they must not overlap */
	note("copy %u+%u to %u", from, length, to);
	n = copy_file_range(fds[0], &in, fds[0], &out, length, 0);
	if (n <= 0 || n > (ssize_t)length)
		fail("copy gave %zd", n);
	grow(to);
	memcpy(model + to, model + from, (size_t)n);
	if (to + n > size)
		size = to + (unsigned)n;
}

static void op_seek(void)
{
	unsigned offset = place(), end;
	bool hole = below(2);
	off_t at;

	if (offset >= size)
		return;
	note("seek %s from %u", hole ? "hole" : "data", offset);
	if (maps) /* what is dirty in a mapping is data once it is written */
		msync(map, MOST, MS_SYNC);
	at = lseek(fds[0], offset, hole ? SEEK_HOLE : SEEK_DATA);
	if (hole && (at < (off_t)offset || at > (off_t)size))
		fail("a hole at %ld, size %u", (long)at, size);
	if (hole)
		return;
	if (at < 0)
		must(errno == ENXIO, "seek");
	end = at < 0 ? size : (unsigned)at;
	for (unsigned i = offset; i < end; i++)
		if (model[i])
			fail("byte %u in a hole is %u", i, model[i]);
}

static void op_sync(void)
{
	note("sync");
	switch (below(5)) {
	case 0:
		must(!fsync(fds[0]), "fsync");
		return;
	case 1:
		must(!fdatasync(fds[1]), "fdatasync");
		return;
	case 2:
		must(!maps || !msync(map, MOST, below(2) ? MS_SYNC : MS_ASYNC), "msync");
		return;
	case 3:
		must(!sync_file_range(fds[0], place(), 0, SYNC_FILE_RANGE_WRITE), "sync range");
		return;
	default:
		posix_fadvise(fds[0], 0, 0, POSIX_FADV_DONTNEED);
	}
}

static void op_reopen(void)
{
	note("reopen");
	close_all();
	open_all();
}

static void op_size(void)
{
	struct stat st;

	note("stat");
	must(!(below(2) ? fstat(fds[2], &st) : stat(path, &st)), "stat");
	if (st.st_size != (off_t)size)
		fail("size %ld, not %u", (long)st.st_size, size);
}

static void look_at_all(const char *who)
{
	int fd = open(path, O_RDONLY);
	ssize_t n = read(fd, found, MOST);

	if (n != (ssize_t)size)
		fail("%s reads %zd of %u bytes", who, n, size);
	same(found, 0, size, who);
	close(fd);
}

static void look_from_elsewhere(void)
{
	pid_t child = fork();
	int status;

	if (!child) {
		look_at_all("another process");
		exit(0);
	}
	if (waitpid(child, &status, 0) != child || status)
		exit(1);
}

int main(int argc, char **argv)
{
	static void (*const ops[])(void) = {
		op_write,    op_write,    op_write,    op_write,     op_read,
		op_read,     op_read,     op_read,     op_map_write, op_map_write,
		op_map_read, op_map_read, op_truncate, op_allocate,  op_allocate,
		op_copy,     op_seek,     op_size,     op_sync,
	};
	unsigned long count;

	if (argc < 4)
		return 2;
	path = argv[1];
	state = strtoull(argv[2], NULL, 10) * 2 + 1;
	count = strtoul(argv[3], NULL, 10);
	maps = argc < 5;
	unlink(path);
	open_all();
	for (done = 0; done < count; done++) {
		note("nothing");
		if (below(100))
			ops[below(sizeof(ops) / sizeof(*ops))]();
		else
			op_reopen();
		if (done % WHOLE == WHOLE - 1)
			look_at_all("all");
		if (done % (16 * WHOLE) == 0)
			look_from_elsewhere();
	}
	close_all();
	return unlink(path) != 0;
}
