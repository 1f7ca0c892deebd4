/* SPDX-License-Identifier: MIT */
/*
 * The texts a job file is made of. Included files and replaced variables give more
 * texts than the one that was asked for; all are kept until the jobs are freed, and names
 * and values are pointers into them. Where a line came from is an index into a table
 * of origins, so that a job can say it of each of its options in four bytes.
 */
#include "base/infile.h"
#include "job/jobs.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_MAX_BYTES (16u << 20)

char *jobs_keep(struct jobs *jobs, char *text)
{
	char **kept;

	if (!text)
		return NULL;
	kept = reallocarray(jobs->kept, jobs->kept_count + 1, sizeof(*kept));
	if (!kept) {
		free(text);
		return NULL;
	}
	jobs->kept = kept;
	return jobs->kept[jobs->kept_count++] = text;
}

int jobs_add_origin(struct jobs *jobs, const char *file, int line, u32 *out)
{
	struct origin_line *origins =
		reallocarray(jobs->origins, jobs->origin_count + 1, sizeof(*origins));

	if (!origins)
		return -ENOMEM;
	jobs->origins = origins;
	origins[jobs->origin_count] = (struct origin_line){ file, line };
	*out = jobs->origin_count++;
	return 0;
}

const struct origin_line *job_origin(const struct jobs *jobs, const struct job *j, const char *name)
{
	const struct option *o = options_find(name);
	u32 at;

	assert(o);
	at = j->option_at[o - options_table];
	return &jobs->origins[at ? at : j->at];
}

int jobs_add_note(struct jobs *jobs, const struct origin_line *at, const char *format, ...)
{
	struct err note = { "" };
	char **notes, text[384];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	err_set(&note, at->file, at->line, "%s", text);
	notes = reallocarray(jobs->notes, jobs->note_count + 1, sizeof(*notes));
	if (!notes)
		return -ENOMEM;
	jobs->notes = notes;
	notes[jobs->note_count] = strdup(note.text);
	if (!notes[jobs->note_count])
		return -ENOMEM;
	jobs->note_count++;
	return 0;
}

const char *jobs_note(const struct jobs *j, size_t i)
{
	return i < j->note_count ? j->notes[i] : NULL;
}

static int read_stream(FILE *f, char **out)
{
	size_t size = 0, room = 4096, got;
	char *text = malloc(room), *more;

	while (text) {
		got = fread(text + size, 1, room - size - 1, f);
		size += got;
		if (!got || size > FILE_MAX_BYTES)
			break;
		if (size + 1 == room) {
			room *= 2;
			more = realloc(text, room);
			if (!more)
				free(text);
			text = more;
		}
	}
	if (!text)
		return -ENOMEM;
	*out = text;
	if (ferror(f))
		return -errno;
	if (size > FILE_MAX_BYTES)
		return -EFBIG;
	text[size] = 0;
	return strlen(text) == size ? 0 : -EILSEQ;
}

int read_text_file(const char *path, char **out)
{
	int fd = infile_open(path), rc;
	char *text = NULL;
	FILE *f;

	if (fd < 0)
		return fd;
	f = fdopen(fd, "r");
	if (!f) {
		close(fd);
		return -ENOMEM;
	}
	rc = read_stream(f, &text);
	fclose(f);
	if (rc) {
		free(text);
		return rc;
	}
	*out = text;
	return 0;
}

struct replacing {
	const struct jobs_reading *how;
	const struct origin_line *at;
	struct err *e;
	const char *text;
	FILE *out;
};

/* "${NAME}" at `at`; how many letters were read, 0: it is no variable, negative: an error. */
static int replace_variable(struct replacing *r, const char *at)
{
	const char *end = strchr(at, '}'), *value;
	char name[128];

	if (!end || end == at + 2)
		return 0;
	if ((size_t)(end - at) >= sizeof(name))
		return err_set(r->e, r->at->file, r->at->line, "%.40s...: the name is too long",
			       at);
	snprintf(name, sizeof(name), "%.*s", (int)(end - at - 2), at + 2);
	value = getenv(name);
	if (!value)
		return err_set(r->e, r->at->file, r->at->line,
			       "%s: the environment has no variable %s", r->text, name);
	fputs(value, r->out);
	return (int)(end + 1 - at);
}

static int replace_keyword(struct replacing *r, const char *at)
{
	const struct {
		const char *name;
		u64 value;
	} keywords[] = {
		{ "$pagesize", PAGE_SIZE },
		{ "$mb_memory", r->how ? r->how->memory_bytes >> 20 : 0 },
		{ "$ncpus", r->how ? r->how->cpus : 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(keywords); i++) {
		size_t len = strlen(keywords[i].name);

		if (strncmp(at, keywords[i].name, len) != 0)
			continue;
		if (!keywords[i].value)
			return err_set(r->e, r->at->file, r->at->line,
				       "%s: no machine is known here that has a %s", r->text,
				       keywords[i].name);
		fprintf(r->out, "%llu", (unsigned long long)keywords[i].value);
		return (int)len;
	}
	return 0;
}

static int replace_all(struct replacing *r)
{
	const char *c = r->text;

	while (*c) {
		int len = 0;

		if (c[0] == '$')
			len = c[1] == '{' ? replace_variable(r, c) : replace_keyword(r, c);
		if (len < 0)
			return len;
		if (!len)
			fputc(*c++, r->out);
		c += len;
	}
	return 0;
}

const char *substitute(struct jobs *jobs, const struct jobs_reading *how, const char *text,
		       const struct origin_line *at, int *error, struct err *e)
{
	struct replacing r = { .how = how, .at = at, .e = e, .text = text };
	char *result = NULL;
	size_t size;

	*error = 0;
	if (!strchr(text, '$'))
		return text;
	r.out = open_memstream(&result, &size);
	if (r.out)
		*error = replace_all(&r);
	if (!r.out || fclose(r.out))
		*error = -ENOMEM;
	if (*error) {
		free(result);
		return NULL;
	}
	result = jobs_keep(jobs, result);
	if (!result)
		*error = -ENOMEM;
	return result;
}
