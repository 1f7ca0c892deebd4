/* SPDX-License-Identifier: MIT */
/*
 * A record is the result of one point as a line of JSON. Ranks send each other
 * records, and a journal is a file of them under a head that says which sweep it is
 * of. Doubles are written with 17 digits, so that what comes back is what was sent.
 *
 * A journal only ever grows by whole lines. If the machine stopped in the middle of
 * one, the torn end is cut off when it is opened again, and that point runs again;
 * so do points that failed, since what failed them may be gone. It is locked as long as it is open.
 */
#include "base/infile.h"
#include "lab/metric_json.h"
#include "lab/sweep.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define EXACT (JSON_COMPACT | JSON_REAL_PRECISION(17))

char *sweep_record(const struct sweep *s, size_t point)
{
	const struct lab_result *r = &s->results[point];
	json_t *root, *figures = json_object();
	char *text = NULL;

	assert(s->done[point]);
	root = json_pack("{s:I, s:f, s:f, s:o}", "point", (json_int_t)point, "wall_s", r->wall_s,
			 "virtual_s", r->virtual_s, "predicted", figures);
	if (!root)
		return NULL;
	if (r->error && (json_object_set_new(root, "error", json_integer(r->error)) ||
			 json_object_set_new(root, "text", json_string(r->text))))
		goto out;
	if (metrics_to_json(figures, &r->predicted))
		goto out;
	text = json_dumps(root, EXACT);
out:
	json_decref(root);
	return text;
}

static long enter(struct sweep *s, const json_t *root)
{
	const json_t *point = json_object_get(root, "point");
	json_int_t i = json_is_integer(point) ? json_integer_value(point) : -1;
	const char *text = json_string_value(json_object_get(root, "text"));
	struct lab_result r = { .error = (int)json_integer_value(json_object_get(root, "error")) };

	if (i < 0 || (size_t)i >= s->count ||
	    metrics_from_json(json_object_get(root, "predicted"), &r.predicted))
		return -1;
	r.c = &s->plan.cases[i];
	policy_label(&r.c->policy, r.policy, sizeof(r.policy));
	snprintf(r.text, sizeof(r.text), "%s", text ? text : "");
	r.wall_s = json_number_value(json_object_get(root, "wall_s"));
	r.virtual_s = json_number_value(json_object_get(root, "virtual_s"));
	s->results[i] = r;
	s->done[i] = true;
	return (long)i;
}

long sweep_enter(struct sweep *s, const char *record)
{
	json_t *root = json_loads(record, 0, NULL);
	long point = root ? enter(s, root) : -1;

	json_decref(root);
	return point;
}

static int write_all(int fd, const char *text)
{
	size_t len = strlen(text);

	while (len) {
		ssize_t n = write(fd, text, len);

		if (n < 0 && errno != EINTR)
			return -errno;
		text += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
	return 0;
}

static int add_line(int fd, const char *text)
{
	char *line;
	int error;

	if (!text || asprintf(&line, "%s\n", text) < 0)
		return -ENOMEM;
	error = write_all(fd, line);
	free(line);
	return !error && fdatasync(fd) && errno != EINVAL ? -errno : error;
}

/* The head of a journal: a string of malloc's. */
static char *head_line(const struct sweep *s)
{
	json_t *root =
		json_pack("{s:s, s:s, s:I, s:I}", "sweep", s->code_name, "experiment", s->x->name,
			  "seed", (json_int_t)s->seed, "points", (json_int_t)s->count);
	char *text = root ? json_dumps(root, JSON_COMPACT) : NULL;

	json_decref(root);
	return text;
}

/* Enters the lines of `f` behind its head; the length of what is whole, or -EINVAL. */
static off_t read_journal(struct sweep *s, FILE *f, const char *path, struct err *e)
{
	char *line = NULL, *head = head_line(s);
	size_t room = 0;
	off_t whole = 0;
	int number = 0;
	ssize_t len;

	while (whole >= 0 && head && (len = getline(&line, &room, f)) > 0) {
		long point;

		if (line[len - 1] != '\n')
			break;
		line[len - 1] = 0;
		number++;
		whole += len;
		if (number == 1 && strcmp(line, head) != 0)
			whole = err_set(e, path, 1,
					"this is no journal of this sweep: its experiment, "
					"settings, seed or version are others");
		if (number == 1)
			continue;
		point = sweep_enter(s, line);
		if (point < 0)
			whole = err_set(e, path, number, "this is no result of a point");
		else if (s->results[point].error)
			s->done[point] = false;
	}
	free(line);
	free(head);
	return head ? whole : -ENOMEM;
}

static int begin(struct sweep_journal *j, const struct sweep *s)
{
	char *head = head_line(s);
	int error = add_line(j->fd, head);

	free(head);
	return error;
}

/* What the journal has so far, if there is one. As of read_journal(). */
static off_t read_old(struct sweep *s, const char *path, struct err *e)
{
	int fd = infile_open(path);
	off_t whole;
	FILE *f;

	if (fd == -ENOENT)
		return 0;
	if (fd < 0)
		return err_set(e, path, 0, "the journal cannot be read: %s", infile_error(fd));
	f = fdopen(fd, "r");
	if (!f) {
		close(fd);
		return -ENOMEM;
	}
	whole = read_journal(s, f, path, e);
	fclose(f);
	return whole;
}

/* Without a lock where the file system has none. */
static int lock(int fd)
{
	return flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK ? -EBUSY : 0;
}

int sweep_journal_open(struct sweep_journal *j, struct sweep *s, const char *path, struct err *e)
{
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
	int error = fd < 0 ? -errno : lock(fd);
	off_t whole = error ? 0 : read_old(s, path, e);

	*j = (struct sweep_journal){ .path = path, .fd = fd };
	if (!error && whole >= 0)
		error = ftruncate(fd, whole) ? -errno : 0;
	if (!error && !whole)
		error = begin(j, s);
	if (error == -EBUSY)
		err_set(e, path, 0, "the journal is in use by another sweep");
	else if (error)
		err_set(e, path, 0, "the journal cannot be written: %s", infile_error(error));
	if (!error && whole < 0)
		error = (int)whole;
	if (error)
		sweep_journal_close(j);
	return error;
}

int sweep_journal_add(const struct sweep_journal *j, const struct sweep *s, size_t point)
{
	char *record = sweep_record(s, point);
	int error = add_line(j->fd, record);

	free(record);
	return error;
}

void sweep_journal_close(struct sweep_journal *j)
{
	if (j->fd >= 0)
		close(j->fd);
	j->fd = -1;
}
